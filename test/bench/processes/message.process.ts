import { Redis } from 'ioredis';
import { workerChannel } from '../../support/worker-channel.js';
import { monotonicMs } from '../measure/clock.js';

// One of two processes that pass a bare message to and fro: from the end of the work of one to the beginning of the work
// of the other. Nothing that tells a waiter in another process can be sooner.

export type ToMessage =
  | { readonly type: 'open'; readonly url: string; readonly own: string; readonly other: string }
  | { readonly type: 'begin' }
  | { readonly type: 'run'; readonly forMs: number; readonly workMs: number };

export type FromMessage =
  | { readonly type: 'opened' }
  /** When each piece of work began and ended. */
  | { readonly type: 'ran'; readonly times: readonly (readonly [beganAt: number, endedAt: number])[] };

let clients: readonly Redis[] = [];
let pass = (): void => undefined;
let work = (): void => undefined;

const channel = workerChannel<ToMessage, FromMessage>(() => {
  for (const client of clients) client.disconnect();
});

channel.on('open', async ({ url, own, other }) => {
  const [commands, subscriber] = [new Redis(url), new Redis(url)] as const;
  clients = [commands, subscriber];
  subscriber.on('message', () => work());
  await subscriber.subscribe(own);
  pass = () => void commands.publish(other, '');
  channel.send({ type: 'opened' });
});

channel.on('run', ({ forMs, workMs }) => {
  const times: [number, number][] = [];
  work = () => {
    const beganAt = monotonicMs();
    setTimeout(() => {
      times.push([beganAt, monotonicMs()]);
      pass();
    }, workMs);
  };
  setTimeout(() => {
    work = () => undefined;
    channel.send({ type: 'ran', times });
  }, forMs);
});

channel.on('begin', () => pass());
