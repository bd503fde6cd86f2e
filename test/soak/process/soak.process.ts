import { getEventListeners, setMaxListeners } from 'node:events';
import { heapAfterCollection } from '../../support/garbage.js';
import { Occupancy } from '../../support/measure/occupancy.js';
import { until } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';
import { noEndings, runCycle, type Ending } from '../../support/cycles/cycle.js';
import { CYCLES } from '../cycles/index.js';
import { openApp, type SoakApp } from './app.js';
import { countListeners, countTimers } from './census.js';

export type ToSoak =
  | { readonly type: 'open'; readonly url: string }
  | { readonly type: 'cycle'; readonly cycles: number }
  /** Waits until nothing is held, awaited or undone any more. */
  | { readonly type: 'idle' }
  /** Waits until everything has come to rest, and takes stock. */
  | { readonly type: 'takeStock' };

/** What has to be at the end what it was at the beginning. */
export interface Stock {
  readonly heapBytes: number;
  /** All of `LockService.usage` together, of all services. */
  readonly usage: number;
  /** Those of the apps themselves not counted. */
  readonly timers: number;
  /** What keeps the process alive, as Node names it. */
  readonly resources: string;
  /** On the clients of Redis and their sockets, on the callers' signal, and on the process. */
  readonly listeners: number;
  /** Channels that the stores listen to. */
  readonly subscriptions: number;
}

export type FromSoak =
  | { readonly type: 'opened' }
  | { readonly type: 'cycled'; readonly endings: Readonly<Record<Ending, number>>; readonly overlaps: number }
  | { readonly type: 'idle' }
  | { readonly type: 'stock'; readonly stock: Stock };

const CALLERS = 100;
/** What goes on for as long as an app does: its connection is asked now and then whether it lives. */
const TIMERS_OF_AN_APP = 1;
const TO_REST_MS = 20_000;

const allTimers = countTimers();
let apps: SoakApp[] = [];
const channel = workerChannel<ToSoak, FromSoak>(async () => {
  await Promise.all(apps.map(({ app }) => app.close()));
});
const longLived = new AbortController().signal;
// All callers wait with it at the same time, which Node would take for a leak.
setMaxListeners(0, longLived);
const occupancy = new Occupancy();
let done = 0;

const usage = (): number =>
  apps.flatMap(({ locks }) => Object.values(locks.usage)).reduce((total, size) => total + size, 0);

const timers = (): number => allTimers() - apps.length * TIMERS_OF_AN_APP;

const listeners = (): number => {
  const clients = apps.flatMap((app) => app.clients);
  const emitters = [process, ...clients, ...clients.map(({ stream }) => stream)];
  const onSignal = getEventListeners(longLived, 'abort').length;
  return emitters.reduce((total, emitter) => total + countListeners(emitter), onSignal);
};

/** Without what the next turn of the event loop ends: that is there at one look, and not at another. */
const resources = (): string => {
  const names = process.getActiveResourcesInfo().filter((name) => name !== 'Immediate');
  return [...new Set(names)]
    .sort()
    .map((name) => `${names.filter((other) => other === name).length} ${name}`)
    .join(', ');
};

channel.on('open', async ({ url }) => {
  // Two of them, which contend for the hot keys through Redis as two processes do.
  apps = [await openApp(url), await openApp(url)];
  channel.send({ type: 'opened' });
});

channel.on('cycle', async ({ cycles }) => {
  const endings = noEndings();
  const last = done + cycles;
  const call = async (caller: number): Promise<void> => {
    const { locks } = apps[caller % apps.length]!;
    const { locks: others } = apps[(caller + 1) % apps.length]!;
    while (done < last) {
      endings[await runCycle(CYCLES, { locks, others, longLived, occupancy, n: done++ })] += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
  channel.send({ type: 'cycled', endings, overlaps: occupancy.overlaps });
});

/** What does not come to rest is seen in the numbers. */
const unlessItTakesTooLong = async (condition: () => boolean): Promise<void> => {
  await until(condition, { timeoutMs: TO_REST_MS }).catch(() => undefined);
};

channel.on('idle', async () => {
  await unlessItTakesTooLong(() => usage() === 0);
  channel.send({ type: 'idle' });
});

channel.on('takeStock', async () => {
  await unlessItTakesTooLong(() => usage() === 0 && timers() === 0);
  // In the same turn: in the next ones an app may ask its connection whether it lives, which takes timers.
  const counted = {
    usage: usage(),
    timers: timers(),
    resources: resources(),
    listeners: listeners(),
    subscriptions: apps.reduce((total, { store }) => total + store.subscriptions, 0),
  };
  channel.send({ type: 'stock', stock: { ...counted, heapBytes: await heapAfterCollection() } });
});
