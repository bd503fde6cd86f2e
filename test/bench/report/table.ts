import { median } from '../measure/statistics.js';
import type { Finding, Outcome } from '../workload.js';
import { gridsOf, troublesOf } from './comparison-grids.js';
import { show, showSpread } from './format.js';
import { textOf } from './grid.js';
import type { Reported } from './report.js';
import { isMet, targetText } from './target.js';

const MET = new Map([
  [true, 'yes'],
  [false, 'NO'],
]);

const HEAD = ['', 'median', 'spread', 'target', 'met'];

const findingRow = (finding: Finding): string[] => [
  `  ${finding.what}`,
  finding.values.length > 0 ? show(median(finding.values), finding.unit) : 'not measured',
  showSpread(finding.values, finding.unit),
  targetText(finding),
  MET.get(isMet(finding) as boolean) ?? '',
];

const comparisonText = ({ comparison }: Outcome): string[] => {
  if (!comparison) return [];
  const grids = gridsOf(comparison, { spread: false }).map(textOf);
  const troubles = troublesOf(comparison).map((line) => `  ! ${line}`);
  return [grids.join('\n\n'), ...(troubles.length > 0 ? [troubles.join('\n')] : [])];
};

/** Rows with their columns below each other. */
const alignedWith = (rows: readonly (readonly string[])[]): ((row: readonly string[]) => string) => {
  const widths = HEAD.map((_none, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return (row) =>
    row
      .map((cell, at) => (at === 1 ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!)))
      .join('  ')
      .trimEnd();
};

/** All that has a target, in one table. */
export const targetsOf = (results: readonly Reported[]): string => {
  const rows = results.flatMap(({ name, findings }) =>
    findings
      .filter(({ target }) => target)
      .map((one) => findingRow({ ...one, what: `${name}: ${one.what}` })),
  );
  const table = [HEAD, ...rows];
  return table.map(alignedWith(table)).join('\n');
};

/** The whole report, for people. */
export const tableOf = (results: readonly Reported[]): string => {
  const sections = results.map((reported) => ({
    title: `${reported.title} [${reported.name}, ${Math.round(reported.seconds)} s]`,
    comparison: comparisonText(reported),
    rows: [
      ...reported.findings.map(findingRow),
      [
        '  sections that overlapped another one',
        String(reported.violations),
        '',
        '0',
        MET.get(reported.violations === 0)!,
      ],
    ],
  }));
  const line = alignedWith([HEAD, ...sections.flatMap((section) => section.rows)]);
  return sections
    .map(({ title, comparison, rows: own }) =>
      [title, ...comparison, [HEAD, ...own].map(line).join('\n')].join('\n\n'),
    )
    .join('\n\n\n');
};
