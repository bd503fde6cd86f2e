import { median } from '../measure/statistics.js';
import type { Finding } from '../workload.js';
import { gridsOf, troublesOf } from './comparison-grids.js';
import { show, showSpread } from './format.js';
import { markdownOf } from './grid.js';
import { overviewOf } from './overview.js';
import type { Report, Reported } from './report.js';
import { isMet, targetText } from './target.js';

const introductionOf = ({ command = 'npm run bench' }: Report): string => `# Benchmarks

This page compares nest-redis-lock with other lock libraries, on servers that the benchmark starts itself.
Each number is the median over the rounds, with the minimum and the maximum in brackets. Compare the numbers of this page with
each other only: they belong to one machine at one time. In every round all contenders run in turn, each in its own processes.
Every workload checks mutual exclusion while it measures. \`${command}\` writes this page; do not edit it.`;

const HOW = `## How it is measured

- The floor is a bare ioredis connection that sends SET with NX and PX, and a script that compares and deletes. It has no token
  and no queue, cannot wait, and has an AsyncLocalStorage in use, as every Nest app that keeps a context. On ZooKeeper it sends
  a create, a list of the children and a delete instead.
- A library with a decorator is called through it. Quorums and clusters are called by hand.
- Libraries run with their defaults. A library that would give up before its callers are served waits without a limit instead.
  Each file in \`test/bench/subjects/\` names the settings and their reasons.
- Across processes, exclusion is checked in a file that every section reads and writes at its start and at its end. Within a
  process, the callers inside are counted. The tables mark a library that admits two callers at once.
- "Did not finish": no caller was served, or the process no longer responded. Larger points then leave the library out.
- The work inside is a timer of 2 ms. On a busy machine it takes longer, for all contenders.
- CPU time is the time of the callers' processes, without Redis. Redis commands are the commands that clients send, without the
  commands that scripts run inside Redis.`;

const findingLine = (finding: Finding): string => {
  const { what, values, unit, target } = finding;
  const measured = values.length > 0 ? show(median(values), unit) : 'not measured';
  const spread = showSpread(values, unit);
  const met = target ? ` Target ${targetText(finding)}: ${isMet(finding) ? 'met' : '**missed**'}.` : '';
  return `- ${what}: ${measured}${spread && ` (${spread})`}.${met}`;
};

const sectionOf = (reported: Reported): string => {
  const { title, shows, doesNotShow, charts = [], comparison, findings, violations } = reported;
  const troubles = comparison ? troublesOf(comparison).map((line) => `- ${line}`) : [];
  const parts = [
    `## ${title}`,
    ...(shows === undefined ? [] : [`Shows: ${shows}`]),
    ...(comparison ? charts.map(({ file, title: alt }) => `![${alt}](${file})`) : []),
    ...(comparison ? gridsOf(comparison, { spread: true }).map(markdownOf) : []),
    ...(troubles.length > 0 ? [`What went wrong:\n\n${troubles.join('\n')}`] : []),
    ...(findings.length > 0
      ? [`Results of nest-redis-lock:\n\n${findings.map(findingLine).join('\n')}`]
      : []),
    ...(violations > 0 ? [`**${violations} sections of nest-redis-lock overlapped another one.**`] : []),
    ...(doesNotShow === undefined ? [] : [`Does not show: ${doesNotShow}`]),
  ];
  return parts.join('\n\n');
};

const loadText = ({ load }: Report): string[] => {
  if (!load) return [];
  const [before, after] = [load.before, load.after].map((one) => one.map((value) => value.toFixed(1)));
  return [
    `Load of the machine over 1, 5 and 15 minutes: ${before!.join(', ')} before the run, ${after!.join(', ')} after it. The load ` +
      'after it includes the benchmark. If the load before the run is larger than the number of CPUs, other programs were busy: ' +
      'compare only the ratios.',
  ];
};

const machineText = (report: Report): string => {
  const { machine, rounds, growthRounds, quick, peers } = report;
  const versions = Object.entries(peers).map(([name, version]) => `${name} ${version}`);
  return [
    '## The machine and what ran on it',
    `${machine.cpu}, ${machine.memory}, ${machine.system}; Node ${machine.node}; Redis ${machine.redis} on loopback, without persistence; ` +
      `${machine.when}. Rounds: ${rounds}, and ${growthRounds} for the workloads that grow${quick ? '; **quick mode: for trying it out, not for quoting**' : ''}.`,
    ...loadText(report),
    'Packages, as installed from the registry:',
    versions.map((version) => `- ${version}`).join('\n'),
  ].join('\n\n');
};

/** Returns the page of a report, as Markdown. */
export const pageOf = (report: Report): string => {
  const overview = overviewOf(report);
  const parts = [
    introductionOf(report),
    ...(overview === undefined ? [] : [overview]),
    machineText(report),
    HOW,
    ...report.workloads.map(sectionOf),
  ];
  return `${parts.join('\n\n')}\n`;
};
