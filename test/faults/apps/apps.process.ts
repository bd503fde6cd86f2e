import 'reflect-metadata';
import { workerChannel } from '../../support/worker-channel.js';
import { HistoryWriter } from '../history/history-file.js';
import { labNow } from '../history/lab-clock.js';
import { logStandstills } from '../workload/worker/loop-log.js';
import { loadLibrary, storesOf } from '../workload/worker/load-library.js';
import { Recorder } from '../workload/worker/recorder.js';
import { startApp } from '../workload/worker/start-app.js';
import type { AppPlan, AppsSetup, FromApps, Slots, ToApps } from './app-messages.js';
import { RequestingApp } from './requesting-app.js';
import { BareConnections } from './bare-connection.js';

// Several Nest apps with the real library in one process, none of which has anything in common with another.

const setup = JSON.parse(process.argv[2]!) as AppsSetup;
const file = new HistoryWriter(setup.history);
const library = await loadLibrary(setup.library, storesOf(setup.redis));
const bare = new BareConnections();

const unhandled = (what: string) => (reason: unknown) => {
  file.write({ type: 'unhandled', at: labNow(), message: `an app: ${what}: ${String(reason)}` });
  console.error(what, reason);
};
process.on('unhandledRejection', unhandled('rejection'));
process.on('uncaughtException', unhandled('exception'));

let apps: RequestingApp[] = [];

const open = async (
  plan: AppPlan,
  round: string,
  slots?: Slots,
  elsewhere?: Slots,
): Promise<RequestingApp> => {
  const recorder = new Recorder(plan.name, file);
  const running = await startApp(library, setup, recorder);
  const stopLog = logStandstills(recorder, labNow);
  const app = new RequestingApp(
    plan,
    running,
    {
      recorder,
      keyPrefix: setup.settings.keyPrefix,
      round,
      bare,
      served: (name, at) => channel.send({ type: 'served', name, at }),
      closed: stopLog,
    },
    slots,
  );
  try {
    await app.prepare(elsewhere);
    return app;
  } catch (error) {
    await app.close();
    throw error;
  }
};

const close = async (): Promise<void> => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
};

const channel = workerChannel<ToApps, FromApps>(async () => {
  await close();
  bare.close();
});
channel.on('open', async ({ plans, round, slots, elsewhere }) => {
  const opened = await Promise.allSettled(plans.map((plan) => open(plan, round, slots, elsewhere)));
  apps = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  channel.send({ type: 'opened', names: apps.map(({ plan }) => plan.name) });
});
channel.on('fault', () => {
  for (const app of apps) app.fault();
});
channel.on('accepting', ({ ports }) => {
  for (const app of apps) app.acceptingAt(ports);
});
channel.on('close', async () => {
  await close();
  channel.send({ type: 'closed' });
});
channel.send({ type: 'ready' });
