import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred, until, type Deferred } from '../../../support/async.js';
import { workerChannel } from '../../../support/worker-channel.js';
import { HistoryWriter } from '../../history/history-file.js';
import { labNow } from '../../history/lab-clock.js';
import { RegisterClient } from '../../register/register-client.js';
import type { FromWorker, ToWorker, WorkerSetup } from '../worker-messages.js';
import { Caller, type Surroundings } from './caller.js';
import { LoadRunner } from './load-runner.js';
import { logStandstills } from './loop-log.js';
import { loadLibrary, storesOf } from './load-library.js';
import { ORDERS, ordersOf, type Orders } from './orders.service.js';
import { Recorder } from './recorder.js';
import { startApp } from './start-app.js';
import { jumpWallClock } from './wall-clock.js';

// A worker of the laboratory: a running Nest app with the real library, and callers who use it in every way.

/** How long the library may take to clean up once nobody uses it any more, in ms. */
const CLEAN_UP_MS = 4_000;
/** And how long it is given while a connection is down. */
const LONGEST_CLEAN_UP_MS = 9_000;
/** A worker may be started while servers change places. */
const STARTED_MS = 40_000;

const setup = JSON.parse(process.argv[2]!) as WorkerSetup;
const recorder = new Recorder(setup.process, new HistoryWriter(setup.history));
const register = new RegisterClient(setup.registerPort);
const library = await loadLibrary(setup.library, storesOf(setup.redis));

const unhandled = (what: string) => (reason: unknown) => {
  recorder.write({ type: 'unhandled', message: `${what}: ${String(reason)}` });
  console.error(what, reason);
};
process.on('unhandledRejection', unhandled('rejection'));
process.on('uncaughtException', unhandled('exception'));
process.on('warning', unhandled('warning'));

const { keyPrefix, watchdogMs } = setup.settings;
const { app, locks, store, redis } = await startApp(library, setup, recorder, ({ kinds }) => [
  { provide: ORDERS, useClass: ordersOf(library, kinds) },
]);
const { clients } = redis;
// After the first lock everything that is made once is there. A worker may be started while something is wrong.
await until(() => locks.withLock(`start of ${setup.process}`, () => true), {
  timeoutMs: STARTED_MS,
  what: 'the first lock',
});

await until(() => clients.areUp, { timeoutMs: STARTED_MS, what: 'all connections' });

const signs = new Map<string, Deferred<void>>();
const signOf = (what: string): Deferred<void> => {
  const sign = signs.get(what) ?? deferred();
  signs.set(what, sign);
  return sign;
};
const around: Surroundings = {
  library,
  locks,
  orders: app.get<Orders>(ORDERS),
  keyPrefix,
  watchdogMs,
  recorder,
  register,
  notify: (what) => channel.send({ type: 'notified', what }),
  notified: (what) => signOf(what).promise,
};
let caller = new Caller(around, '');
let load: LoadRunner | undefined;
const stopLog = logStandstills(recorder, labNow);

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
const timersBefore = timers();
const clientListenersBefore = clients.listeners;
const sizes = (): Record<string, number> => ({
  ...locks.usage,
  held: locks.held().length,
  watches: store.watches,
  subscriptions: redis.subscriptions,
  timers: Math.max(0, timers() - timersBefore),
  listeners: caller.listenersLeft,
  clientListeners: Math.max(0, clients.listeners - clientListenersBefore),
});

const channel = workerChannel<ToWorker, FromWorker>(async () => {
  stopLog();
  register.close();
  await app.close();
});
channel.on('begin', ({ round, load: wanted }) => {
  caller = new Caller(around, round);
  load = wanted && new LoadRunner(caller, wanted, setup.process);
});
channel.on('perform', async ({ id, task }) => {
  await caller.perform(task);
  channel.send({ type: 'performed', id });
});
channel.on('use', async ({ id, task }) => {
  await caller.use(task);
  channel.send({ type: 'performed', id });
});
channel.on('stop', async () => {
  await load?.stop();
  await caller.idle();
  // Counted from when the connections are up: one that is being made has timers and listeners of its own.
  const latest = labNow() + LONGEST_CLEAN_UP_MS;
  for (let end = labNow() + CLEAN_UP_MS; labNow() < end && Object.values(sizes()).some(Boolean);) {
    await sleep(20);
    if (!clients.areUp && labNow() < latest) end = labNow() + CLEAN_UP_MS;
  }
  recorder.write({ type: 'usage', sizes: sizes() });
  channel.send({ type: 'idle' });
});
channel.on('go', ({ what }) => signOf(what).resolve());
channel.on('block', ({ ms }) => {
  // The next look would take what the session got before the block for news of after it.
  recorder.refresh();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
});
channel.on('jump', ({ ms }) => {
  jumpWallClock(ms);
  recorder.refresh();
});
channel.send({ type: 'ready', instance: store.instance });
