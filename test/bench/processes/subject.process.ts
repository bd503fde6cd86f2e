import { workerChannel } from '../../support/worker-channel.js';
import { subjectNamed } from '../subjects/index.js';
import type { OpenSubject } from '../subjects/subject.js';
import { runLoad } from './load.js';
import type { FromSubject, ToSubject } from './subject-worker.js';

// A process with one subject in it: subjects do not slow each other down, and each pays for what it switches on.

let subject: OpenSubject | undefined;
const channel = workerChannel<ToSubject, FromSubject>(async () => subject?.close());

channel.on('open', async ({ name, options }) => {
  subject = await subjectNamed(name).open(options);
  channel.send({ type: 'opened', styles: Object.keys(subject.styles) });
});

channel.on('run', async ({ style, load }) => {
  const run = subject?.styles[style];
  if (!run) throw new Error(`this subject has no style "${style}"`);
  channel.send({ type: 'ran', result: await runLoad(run, load) });
});
