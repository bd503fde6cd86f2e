import type { InspectedHolder, InspectedKey } from '../core/holders/holders.js';
import type { LockHolder } from '../index.js';

/** A row: a key with one of its holders or queued owners. */
export interface Row {
  readonly key: string;
  readonly kind: string;
  readonly state?: string;
  readonly holder?: InspectedHolder;
  /** Process of a queued owner. */
  readonly process?: LockHolder | undefined;
  readonly owner: string;
  readonly waiting?: number;
  readonly nodes?: number | undefined;
}

type Cell = string | number | undefined;

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
] as const;

/** Returns a duration for people: `850 ms`, `28.4 s`, `3 min 20 s`, `2 d 4 h`. */
export const durationOf = (ms: number): string => {
  if (ms === Infinity) return 'no end';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const at = UNITS.findIndex(([unitMs]) => ms >= unitMs);
  const [unitMs, unit] = UNITS[at]!;
  const [nextMs, next] = UNITS[at + 1] ?? [1_000, 's'];
  return `${Math.floor(ms / unitMs)} ${unit} ${Math.floor((ms % unitMs) / nextMs)} ${next}`;
};

const processOf = ({ holder, process = holder?.process }: Row): LockHolder | undefined => process;
/** Quotes text of others that would look like several columns. */
const inColumn = (text: string | undefined): Cell =>
  text !== undefined && /[\s"]/.test(text) ? JSON.stringify(text) : text;

/** Columns in their order. All but the first ones appear only if a row has a value. */
const COLUMNS: readonly (readonly [head: string, cell: (row: Row) => Cell])[] = [
  ['KEY', ({ key }) => inColumn(key)],
  ['KIND', ({ kind }) => kind],
  ['STATE', ({ state }) => state],
  ['OWNER', ({ owner }) => inColumn(owner)],
  ['REMAINING', ({ holder }) => holder && durationOf(holder.remainingMs)],
  ['ENTERED', ({ holder }) => (holder && holder.count > 1 ? holder.count : undefined)],
  ['WAITING', ({ waiting }) => waiting],
  ['NODES', ({ nodes }) => nodes],
  ['HOST', (row) => inColumn(processOf(row)?.host)],
  ['PID', (row) => processOf(row)?.pid],
  ['APP', (row) => inColumn(processOf(row)?.appName)],
  ['HELD', ({ holder }) => (holder?.heldMs === undefined ? undefined : durationOf(holder.heldMs))],
  ['LABEL', ({ holder }) => inColumn(holder?.label)],
];

const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns text that cannot steer the terminal: anyone may write a key or an owner into the store. */
export const printable = (text: string): string =>
  text.replace(CONTROL, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);

/**
 * Returns rows as an aligned table with a head; each line ends with a line break. Where the table is too wide for the
 * terminal, each row is a block of lines.
 */
export const tableOf = (rows: readonly Row[], width = Infinity): string => {
  const columns = COLUMNS.map(([head, cell]) => [
    head,
    ...rows.map((row) => printable(String(cell(row) ?? ''))),
  ]).filter(([, ...cells]) => cells.some((cell) => cell !== ''));
  const widths = columns.map((cells) => cells.reduce((most, { length }) => Math.max(most, length), 0));
  const lines = ['', ...rows]
    .map((_, line) => columns.map((cells, at) => cells[line]!.padEnd(widths[at]!)).join('  '))
    .map((line) => `${line.trimEnd()}\n`);
  if (lines.every(({ length }) => length - 1 <= width)) return lines.join('');
  const widest = columns.reduce((most, [head]) => Math.max(most, head!.length), 0);
  return rows
    .map((_, at) => columns.map(([head, ...cells]) => [head!.padEnd(widest), cells[at]!] as const))
    .map((block) => block.map(([head, cell]) => (cell === '' ? '' : `${head}  ${cell}\n`)).join(''))
    .join('\n');
};

/** Returns the rows of the holders of a key. A lock of another library has the kind `string`. */
export const holderRows = (
  key: string,
  { kind, heldAs, holders }: Pick<InspectedKey, 'kind' | 'heldAs' | 'holders'>,
  more: Pick<Row, 'state' | 'waiting' | 'nodes'> = {},
): Row[] => {
  const shown = heldAs === 'foreign' ? 'string' : kind;
  return holders.map((holder) => ({ key, kind: shown, owner: holder.owner, holder, ...more }));
};
