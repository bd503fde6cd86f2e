import { workerChannel } from '../../support/worker-channel.js';
import type { OpenSubject } from '../subjects/subject.js';
import { subjectNamed } from '../subjects/index.js';

export type ToInTurn =
  | { readonly type: 'open'; readonly url: string; readonly subjects: readonly string[] }
  /** One slice of each subject, alternately first. */
  | { readonly type: 'run'; readonly forMs: number; readonly turnedRound: boolean };

export type FromInTurn =
  | { readonly type: 'opened' }
  /** CPU time for each lock of each subject, in µs. */
  | { readonly type: 'ran'; readonly cpuUs: readonly number[] };

let open: readonly OpenSubject[] = [];
const channel = workerChannel<ToInTurn, FromInTurn>(async () => {
  await Promise.all(open.map((one) => one.close()));
});

const nothing = (): Promise<void> => Promise.resolve();

const slice = async ({ styles }: OpenSubject, forMs: number): Promise<number> => {
  const withLock = styles['withLock']!;
  const before = process.cpuUsage();
  const until = performance.now() + forMs;
  let locks = 0;
  for (; performance.now() < until; locks++) await withLock('in-turn', nothing);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / locks;
};

channel.on('open', async ({ url, subjects }) => {
  const found = await Promise.all(subjects.map(subjectNamed));
  open = await Promise.all(found.map((subject) => subject.open({ url })));
  channel.send({ type: 'opened' });
});

channel.on('run', async ({ forMs, turnedRound }) => {
  const order = open.map((_one, at) => at);
  if (turnedRound) order.reverse();
  const cpuUs: number[] = [];
  for (const at of order) cpuUs[at] = await slice(open[at]!, forMs);
  channel.send({ type: 'ran', cpuUs });
});
