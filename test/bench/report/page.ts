import { median } from '../measure/statistics.js';
import type { Finding } from '../workload.js';
import { gridsOf, troublesOf } from './comparison-grids.js';
import { show, showSpread } from './format.js';
import { markdownOf } from './grid.js';
import { overviewOf } from './overview.js';
import type { Report, Reported } from './report.js';
import { isMet, targetText } from './target.js';

const introductionOf = ({ command = 'npm run bench' }: Report): string => `# Benchmarks

Written by \`${command}\`; not by hand. Numbers are medians over the rounds, with the least and the greatest in brackets.
They are those of one machine at one hour: compare them with each other, not with numbers from elsewhere. All contenders
take turns in every round, each in processes of its own, on Redis servers that the benchmark starts itself. Every
workload checks exclusion while it measures.`;

const HOW = `## How it is measured

- The floor is a bare ioredis connection that sends the same two scripts as nest-redis-lock and nothing else. It cannot wait.
- Libraries are called through their decorator where they have one, of a quorum and a cluster by hand. They run on their defaults, but wait without end where
  they would give up before they are served; each file in \`test/bench/subjects/\` says what was chosen and why.
- Exclusion across processes is checked in a file that every section reads and writes when it comes and when it goes, and
  within a process by counting who is inside. A library that lets two in is shown as such.
- "Did not finish": nobody was served, or the process did not answer any more. It is then left out of larger points.
- Work inside is a timer of 2 ms. On a busy machine it takes longer, for everybody.
- CPU time is that of the callers' processes, without Redis. Redis commands are those that clients send, not those that
  scripts run inside Redis.`;

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
    ...(doesNotShow === undefined ? [] : [`Does not show: ${doesNotShow}`]),
    ...(comparison ? charts.map(({ file, title: alt }) => `![${alt}](${file})`) : []),
    ...(comparison ? gridsOf(comparison, { spread: true }).map(markdownOf) : []),
    ...(troubles.length > 0 ? [`What went wrong:\n\n${troubles.join('\n')}`] : []),
    ...(findings.length > 0 ? [`Of nest-redis-lock:\n\n${findings.map(findingLine).join('\n')}`] : []),
    ...(violations > 0 ? [`**${violations} sections of nest-redis-lock were not alone.**`] : []),
  ];
  return parts.join('\n\n');
};

const loadText = ({ load }: Report): string[] => {
  if (!load) return [];
  const [before, after] = [load.before, load.after].map((one) => one.map((value) => value.toFixed(1)));
  return [
    `Load of the machine over 1, 5 and 15 minutes: ${before!.join(', ')} before, ${after!.join(', ')} after, the benchmark ` +
      'itself among it. More than there are CPUs before it began means that others were at work: then only the ratios count.',
  ];
};

const machineText = (report: Report): string => {
  const { machine, rounds, growthRounds, quick, peers } = report;
  const versions = Object.entries(peers).map(([name, version]) => `${name} ${version}`);
  return [
    '## The machine and what ran on it',
    `${machine.cpu}, ${machine.memory}, ${machine.system}; Node ${machine.node}; Redis ${machine.redis} on loopback, without persistence; ` +
      `${machine.when}. ${rounds} rounds, ${growthRounds} where something grows${quick ? '; **quick mode: for trying it out, not for quoting**' : ''}.`,
    ...loadText(report),
    `As installed from the registry: ${versions.join(', ')}.`,
  ].join('\n\n');
};

/** The page that goes with the charts. */
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
