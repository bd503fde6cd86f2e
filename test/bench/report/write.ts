import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chartSvg } from './chart/index.js';
import { pageOf } from './page.js';
import type { Report } from './report.js';

/** Workloads with a page of their own, by its folder. */
const OWN_PAGES: Readonly<Record<string, RegExp>> = {
  quorum: /^(quorum|cluster)/,
  scale: /^scale$/,
  sql: /^sql/,
  stores: /^stores$/,
  zookeeper: /^zookeeper/,
};

/** Returns the reports of the pages, by folder. */
export const pagesOf = (report: Report): ReadonlyMap<string, Report> => {
  const pages = new Map<string, Report>();
  for (const workload of report.workloads) {
    const folder = Object.entries(OWN_PAGES).find(([, names]) => names.test(workload.name))?.[0] ?? '';
    const workloads = [...(pages.get(folder)?.workloads ?? []), workload];
    pages.set(folder, { ...report, workloads });
  }
  return pages;
};

/** Writes the pages of a run below the folder; returns the names of the files. */
export const writePages = async (report: Report, folder: string): Promise<readonly string[]> => {
  const files: string[] = [];
  for (const [page, its] of pagesOf(report)) {
    files.push(...(await writePage(its, join(folder, page))).map((file) => join(page, file)));
  }
  return files;
};

/** Writes the numbers, the charts and the page; returns the names of the files. */
const writePage = async (report: Report, folder: string): Promise<readonly string[]> => {
  await mkdir(folder, { recursive: true });
  const files = new Map([['results.json', `${JSON.stringify(report, null, 1)}\n`]]);
  for (const { comparison, charts = [] } of report.workloads) {
    for (const chart of comparison ? charts : []) files.set(chart.file, chartSvg(chart, comparison!));
  }
  files.set('README.md', pageOf(report));
  for (const [name, text] of files) await writeFile(join(folder, name), text);
  return [...files.keys()];
};
