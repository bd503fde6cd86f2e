import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chartSvg } from './chart/index.js';
import { pageOf } from './page.js';
import type { Report } from './report.js';

/** Writes the numbers, the charts and the page; returns the names of the files. */
export const writeReport = async (report: Report, folder: string): Promise<readonly string[]> => {
  await mkdir(folder, { recursive: true });
  const files = new Map([['results.json', `${JSON.stringify(report, null, 1)}\n`]]);
  for (const { comparison, charts = [] } of report.workloads) {
    for (const chart of comparison ? charts : []) files.set(chart.file, chartSvg(chart, comparison!));
  }
  files.set('README.md', pageOf(report));
  for (const [name, text] of files) await writeFile(join(folder, name), text);
  return [...files.keys()];
};
