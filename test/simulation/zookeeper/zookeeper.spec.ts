import { describe, expect, it } from 'vitest';
import { simulateZooKeeper } from './simulate-zookeeper.js';
import { zkPlan } from './zk-plan.js';

/** `ZOOKEEPER_SEEDS=100000 npx vitest run test/simulation/zookeeper/zookeeper.spec.ts` runs more, from `ZOOKEEPER_FROM` on. */
const SEEDS = Number(process.env['ZOOKEEPER_SEEDS'] ?? 200);
const FROM = Number(process.env['ZOOKEEPER_FROM'] ?? 1);
/** A seed takes some 25 ms. */
const TIMEOUT_MS = 120_000 + SEEDS * 150;

/** What has to happen in 600 seeds. */
const STATES = [
  'a connection is refused',
  'a container is removed',
  'a request comes over the server before',
  'a server dies before it tells of a session',
  'a server lags behind a client',
  'a session expires',
  'a session expires with nodes',
  'a session moves to another server',
  'a watch is set again too late',
  ...['create', 'createContainer', 'delete', 'getChildren', 'getData', 'hello', 'setWatches', 'sync'].map(
    (name) => `lost reply: ${name}`,
  ),
  ...['create', 'delete', 'getChildren', 'getData', 'hello', 'sync'].map((name) => `lost request: ${name}`),
];

const CODES = [
  ...['aborted', 'failed, not-executed', 'failed, unknown', 'lost', 'lost at once'],
  ...['released', 'shut down', 'taken'],
  ...['downgraded', 'not downgraded: LOCK_STORE_FAILED'],
];

describe('the simulation of the store on ZooKeeper', () => {
  it('is the same run for the same seed', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const [once, again] = [await simulateZooKeeper(zkPlan(seed)), await simulateZooKeeper(zkPlan(seed))];
      expect(again, `seed ${seed}`).toEqual(once);
    }
  });

  it('plans contain every kind of fault', () => {
    const plans = Array.from({ length: 400 }, (_, i) => zkPlan(i + 1));
    const faults = plans.flatMap((plan) => plan.faults);
    expect([...new Set(faults.map(({ kind }) => kind))].sort()).toEqual([
      ...['close', 'crash', 'cut', 'delete', 'election', 'force', 'lag', 'lost-reply', 'lost-request'],
      ...['mute', 'pause', 'refuse', 'server-dies', 'server-pauses', 'silence', 'slow', 'sweep'],
      'unreported',
    ]);
    for (const kind of ['close', 'crash', 'cut', 'mute', 'pause', 'silence'])
      expect(
        faults.some((fault) => fault.kind === kind && 'step' in fault),
        kind,
      ).toBe(true);
    expect([...new Set(plans.map(({ servers }) => servers))].sort()).toEqual([1, 3]);
    const visits = plans.flatMap(({ processes }) => processes.flatMap(({ callers }) => callers.flat()));
    expect([...new Set(visits.map(({ kind }) => kind))].sort()).toEqual([
      'exclusive',
      'permit',
      'read',
      'write',
    ]);
  });

  it(`no promise is broken in ${SEEDS} seeds from ${FROM}`, { timeout: TIMEOUT_MS }, async () => {
    const reported = new Set<string>();
    const seen = new Set<string>();
    let grants = 0;
    for (let seed = FROM; seed < FROM + SEEDS; seed++) {
      const run = await simulateZooKeeper(zkPlan(seed));
      expect(run.broken, `seed ${seed}`).toEqual([]);
      grants += run.grants;
      for (const code of run.reported.keys()) reported.add(code);
      for (const what of run.seen) seen.add(what);
    }
    expect(grants).toBeGreaterThan(SEEDS * 10);
    if (SEEDS < 600) return;
    expect(CODES.filter((code) => !reported.has(code))).toEqual([]);
    expect(STATES.filter((state) => !seen.has(state))).toEqual([]);
  });
});
