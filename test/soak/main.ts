// npm run test:soak: a million locks, of all kinds and with all endings, and then everything is where it began.
//
// The cycles (cycles/) run in a process of its own (process/), which takes stock before and after; the verdict
// (verdict.ts) compares. soak.spec.ts runs fewer of them with all tests.
import { parseArgs } from 'node:util';
import { progressOn } from '../support/measure/progress.js';
import { soak } from './soak.js';
import { isGood, tableOf } from './verdict.js';

const USAGE = `npm run test:soak -- [--cycles N]

  --cycles  how many, 1,000,000 by default`;

const MIN_CYCLES = 1_000;

/** How many cycles; undefined when only help was asked for. Throws an error that says what is wrong. */
const readCycles = (args: readonly string[]): number | undefined => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      cycles: { type: 'string', default: '1000000' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const cycles = Number(values.cycles);
  if (Number.isInteger(cycles) && cycles >= MIN_CYCLES) return cycles;
  throw new Error(`--cycles must be a whole number from ${MIN_CYCLES}, but is "${values.cycles}"`);
};

const run = async (cycles: number): Promise<void> => {
  const result = await soak({ cycles, progress: progressOn(process.stderr, 1) });
  const rate = Math.round(cycles / result.seconds).toLocaleString('en');
  console.log(`\n${tableOf(result)}\n`);
  console.log(`${cycles.toLocaleString('en')} cycles in ${Math.round(result.seconds)} s, ${rate}/s`);
  if (!isGood(result)) process.exitCode = 1;
};

try {
  const cycles = readCycles(process.argv.slice(2));
  if (cycles === undefined) console.log(USAGE);
  else await run(cycles);
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
  console.error(`\n${USAGE}`);
  process.exitCode = 1;
}
