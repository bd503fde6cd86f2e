import { workerChannel } from '../../support/worker-channel.js';
import { heapAfterCollection } from '../../support/garbage.js';
import { subjectNamed } from '../subjects/index.js';
import type { OpenSubject, Style } from '../subjects/subject.js';
import { Holder } from './holder.js';
import { runLoad } from './load.js';
import { runPaced } from './paced.js';
import type { FromSubject, ToSubject } from './subject-worker.js';

// A process with one subject in it: subjects do not slow each other down, and each pays for what it switches on.

let subject: OpenSubject | undefined;
const channel = workerChannel<ToSubject, FromSubject>(async () => subject?.close());

const styleNamed = (name: string): Style => {
  const style = subject?.styles[name];
  if (!style) throw new Error(`this subject has no style "${name}"`);
  return style;
};

let holder = new Holder();

/** Subjects that must handle their rejections themselves: an unhandled one ends the process. */
const OWN = ['floor', 'zookeeper-floor', 'nest-redis-lock'];

channel.on('open', async ({ name, options }) => {
  // An uncaught failure in the background work of a peer must not end the measurement of the others. The numbers show
  // what it failed to do.
  if (!OWN.includes(name)) process.on('unhandledRejection', () => undefined);
  subject = await (await subjectNamed(name)).open(options);
  channel.send({ type: 'opened', styles: Object.keys(subject.styles) });
});

channel.on('run', async ({ style, load }) => {
  channel.send({ type: 'ran', result: await runLoad(styleNamed(style), load) });
});

channel.on('pace', async ({ style, load }) => {
  channel.send({ type: 'paced', result: await runPaced(styleNamed(style), load) });
});

channel.on('hold', async ({ style, keys }) => {
  await holder.request(styleNamed(style), keys);
  channel.send({ type: 'asked' });
});

channel.on('look', async ({ heap }) => {
  const { user, system } = process.cpuUsage();
  const { entered, failures, firstFailure } = holder;
  const heapBytes = heap ? await heapAfterCollection() : 0;
  const cpuMs = (user + system) / 1_000;
  channel.send({ type: 'looked', state: { entered, failures, firstFailure, cpuMs, heapBytes } });
});

channel.on('release', async () => {
  const all = await holder.release();
  holder = new Holder();
  channel.send({ type: 'released', all });
});
