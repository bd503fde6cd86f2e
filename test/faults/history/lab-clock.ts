/**
 * One clock for all processes of a laboratory: the machine's monotonic one, which they share, in ms since the
 * laboratory began. Wall clocks are set forward and back in here, and each process's `performance.now()` has a zero
 * of its own.
 */
const ORIGIN = 'FAULT_LAB_ORIGIN';

const origin = BigInt(process.env[ORIGIN] ?? process.hrtime.bigint());

/** Hand this to every process of the laboratory. */
export const clockEnvironment: Readonly<Record<string, string>> = { [ORIGIN]: String(origin) };

/** To a thousandth of a ms, so that a history can be read. */
export const labNow = (): number => Math.round(Number(process.hrtime.bigint() - origin) / 1_000) / 1_000;
