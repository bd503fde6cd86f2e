import { median } from '../measure/statistics.js';
import type { Finding, Outcome, Unit, Workload } from '../workload.js';

/** What one workload came to. */
export interface Result {
  readonly workload: Workload;
  readonly outcome: Outcome;
}

export const isMet = ({ target, values }: Finding): boolean | undefined => {
  if (!target) return undefined;
  const measured = median(values);
  return 'atLeast' in target ? measured >= target.atLeast : measured <= target.atMost;
};

const digits = (value: number, unit: Unit): number => {
  if (unit === 'ratio') return 3;
  if (Number.isInteger(value) || Math.abs(value) >= 1_000) return 0;
  return Math.abs(value) >= 100 ? 0 : 1;
};

const SUFFIX: Record<Unit, string> = {
  '': '',
  ratio: '',
  '/s': '/s',
  µs: ' µs',
  ms: ' ms',
  '%': ' %',
  MB: ' MB',
};

const show = (value: number, unit: Unit): string => {
  const fractionDigits = digits(value, unit);
  const text = value.toLocaleString('en', {
    minimumFractionDigits: fractionDigits,
    maximumFractionDigits: fractionDigits,
  });
  return text + SUFFIX[unit];
};

const spread = ({ values, unit }: Finding): string =>
  values.length < 2 ? '' : `${show(Math.min(...values), unit)} to ${show(Math.max(...values), unit)}`;

const targetText = ({ target, unit }: Finding): string => {
  if (!target) return '';
  return 'atLeast' in target ? `≥ ${show(target.atLeast, unit)}` : `≤ ${show(target.atMost, unit)}`;
};

const MET = new Map([
  [true, 'yes'],
  [false, 'NO'],
]);

const HEAD = ['', 'median', 'spread', 'target', 'met'];

/** The whole report, for people. */
export const tableOf = (results: readonly Result[]): string => {
  const sections = results.map(({ workload, outcome }) => ({
    title: workload.title,
    rows: [
      ...outcome.findings.map((finding) => [
        `  ${finding.what}`,
        show(median(finding.values), finding.unit),
        spread(finding),
        targetText(finding),
        MET.get(isMet(finding) as boolean) ?? '',
      ]),
      [
        '  sections that were not alone',
        String(outcome.violations),
        '',
        '0',
        MET.get(outcome.violations === 0)!,
      ],
    ],
  }));
  const rows = [HEAD, ...sections.flatMap((section) => section.rows)];
  const widths = HEAD.map((_none, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (at === 1 ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join('  ')
      .trimEnd();
  const blocks = sections.map(({ title, rows: own }) => [title, ...own.map(line)].join('\n'));
  return [line(HEAD), ...blocks].join('\n\n');
};
