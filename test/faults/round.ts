import { processOfOwner } from '../support/owners.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HistoryEvent } from '../checker/history.js';
import { AFTERWARDS } from '../checker/rules/afterwards.rule.js';
import type { Violation } from '../checker/violation.js';
import { until } from '../support/async.js';
import { labNow } from './history/lab-clock.js';
import { judge } from './rules/judge.js';
import type { Calm } from './rules/recovery.rule.js';
import { conduct, type Inflicted } from './schedule/conductor.js';
import type { Schedule } from './schedule/schedule.js';
import { FAIR_QUEUES, QUEUES, READ_WRITE_QUEUES, RECOVERY_MS, SESSION_MS, SETTINGS } from './settings.js';
import { LONGEST_MINIMUM_MS } from './workload/random-task.js';
import { isObject } from './workload/random-object-task.js';
import { limitOf } from './workload/task.js';
import type { Scribe } from './history/scribe.js';
import { writeNodesLeft } from './topology/ensemble/nodes-left.js';
import { writeRowsLeft } from './topology/rows-left.js';
import type { RedisServer } from '../support/servers/redis-server.js';
import type { Shape, Topology } from './topology/topology.js';
import type { Load } from './workload/worker-messages.js';

export interface RoundPlan {
  /** Part of every key; unique on this topology. */
  readonly name: string;
  readonly seed: string;
  readonly schedule: Schedule;
  readonly callers: number;
}

export interface RoundResult {
  readonly plan: RoundPlan;
  readonly topology: string;
  readonly shape: Shape;
  readonly events: readonly HistoryEvent[];
  readonly inflicted: readonly Inflicted[];
  readonly violations: readonly Violation[];
  /** Judges a piece of the history as the whole was judged. */
  readonly judge: (events: readonly HistoryEvent[]) => Violation[];
}

/** How long it is calm before the faults; its first part is for warming up. */
const CALM_BEFORE_MS = 1_300;
const WARM_UP_MS = 400;
const CALM_AFTER_MS = 900;
const HOT_KEYS = 3;
const WANTED_KEYS = Array.from({ length: HOT_KEYS }, (_, i) => `hot-${i + 1}`);

const DEFAULT_LOAD = { hotKeys: HOT_KEYS, coldKeys: 40, keptForMs: 900, minimum: true };
const ALL_KINDS: Load['kinds'] = ['permit', 'fair', 'read-write', 'object'];
/** What else there is to do. A quorum requests every server each time, and a database commits each time. */
const LOADS: Readonly<Record<Shape, Partial<Load> & Pick<Load, 'crowd' | 'kinds' | 'keepers'>>> = {
  one: { crowd: 10, kinds: ALL_KINDS, keepers: 0 },
  quorum: { crowd: 4, kinds: ['read-write'], keepers: 2 },
  sentinel: { crowd: 6, kinds: ALL_KINDS, keepers: 3 },
  cluster: { crowd: 6, kinds: ALL_KINDS, keepers: 3 },
  database: { crowd: 4, kinds: ['permit'], keepers: 2 },
  // Some locks are kept until after the session has ended.
  zookeeper: { crowd: 4, kinds: ['read-write'], keepers: 4, keptForMs: 2 * SESSION_MS, minimum: false },
};

/** Which process each owner of holds belongs to. */
export const instancesOf = ({ seats }: Topology): Map<string, string> =>
  new Map(seats.flatMap(({ allLives }) => allLives.map(({ instance, name }) => [instance, name] as const)));

/** Permits that came from nowhere, or do not come back: those that are free and those that are not are the limit. */
const writePermitsLeft = async (
  scribe: Scribe,
  server: RedisServer,
  key: string,
  limit: number,
): Promise<void> => {
  const script =
    "return {redis.call('get', KEYS[1]), redis.call('zcard', KEYS[2]), redis.call('pttl', KEYS[1])}";
  const reply = await server.cli('EVAL', script, 2, key, `{${key}}:timeout`);
  const [free, taken, leftMs] = reply as [string | null, number, number];
  if (free === null) return;
  const sizes = {
    [`permits too many of ${key}`]: Number(free) + taken - limit,
    endless: leftMs === -1 ? 1 : 0,
  };
  scribe.write({ type: 'usage', at: labNow(), process: 'redis', sizes });
};

/** Who has a lock. The field of a reader stays for as long as others read, also when its own time is over. */
const ownersIn = async (server: RedisServer, key: string): Promise<string[]> => {
  const fields = (await server.cli('HKEYS', key)) as string[];
  const owners: string[] = [];
  for (const field of fields.filter((name) => name !== 'mode')) {
    const isReader = fields.includes('mode') && !field.endsWith(':write');
    if (!isReader || (await server.cli('EXISTS', `{${key}}:${field}:rwlock_timeout:1`)) === 1)
      owners.push(field.replace(/:write$/, ''));
  }
  return owners;
};

/** Holds of living workers that have nothing to do, and any that would never end. */
const writeHoldsLeft = async (
  { seats, scribe }: Topology,
  server: RedisServer,
  keys: string,
): Promise<void> => {
  const alive = new Map(seats.filter(({ isTaken }) => isTaken).map(({ life }) => [life.instance, life.name]));
  for (const key of (await server.cli('KEYS', keys)) as string[]) {
    if (isObject(key)) continue;
    const limit = limitOf(key);
    if (limit !== undefined) {
      await writePermitsLeft(scribe, server, key, limit);
      continue;
    }
    const isEndless = (await server.cli('PTTL', key)) === -1;
    const owners = await ownersIn(server, key);
    if (isEndless)
      scribe.write({ type: 'left', at: labNow(), process: 'redis', key, owner: owners[0] ?? '' });
    for (const owner of owners) {
      const process = alive.get(processOfOwner(owner));
      if (process) scribe.write({ type: 'left', at: labNow(), process, key, owner });
    }
  }
};

/** A process hears what it is told for as long as it lives, and sentinels hear of each other. */
const isOfAProcess = (channel: string): boolean =>
  channel.startsWith('nest_redis_lock:grant:') || channel.startsWith('__sentinel__:');

/** Places of living workers that have nothing to do, and lines that would never end. */
const writeQueuesLeft = async ({ seats, scribe }: Topology, server: RedisServer): Promise<void> => {
  const alive = new Set(seats.filter(({ isTaken }) => isTaken).map(({ life }) => life.instance));
  const sizes: Record<string, number> = {};
  for (const queue of (await server.cli('KEYS', `${QUEUES}*`)) as string[]) {
    const entries = ((await server.cli('HKEYS', queue)) as string[]).filter((name) => name.startsWith('@'));
    const left = entries.filter((name) => alive.has(processOfOwner(name.slice(1))));
    if (left.length > 0) sizes[`places in ${queue}`] = left.length;
    if ((await server.cli('PTTL', queue)) === -1) sizes[`endless ${queue}`] = 1;
  }
  for (const queue of (await server.cli('KEYS', `${READ_WRITE_QUEUES}*`)) as string[]) {
    const entries = ((await server.cli('HKEYS', queue)) as string[]).filter((name) => name !== 'last');
    const left = entries.filter((owner) => alive.has(processOfOwner(owner)));
    if (left.length > 0) sizes[`places in ${queue}`] = left.length;
    if ((await server.cli('PTTL', queue)) === -1) sizes[`endless ${queue}`] = 1;
  }
  for (const queue of (await server.cli('KEYS', `${FAIR_QUEUES}*`)) as string[]) {
    const left = ((await server.cli('LRANGE', queue, 0, -1)) as string[])
      .map(processOfOwner)
      .filter((one) => alive.has(one));
    if (left.length > 0) sizes[`places in ${queue}`] = left.length;
  }
  scribe.write({ type: 'usage', at: labNow(), process: 'redis', sizes });
};

/** What workers have left behind in the servers. */
const writeWhatIsLeft = async (topology: Topology, keys: string): Promise<void> => {
  if (topology.database) return writeRowsLeft(topology, topology.database);
  if (topology.ensemble) return writeNodesLeft(topology, topology.ensemble);
  const commands = topology.fitness.shape === 'cluster' ? ['CHANNELS', 'SHARDCHANNELS'] : ['CHANNELS'];
  for (const server of await topology.keepers()) {
    await writeHoldsLeft(topology, server, keys);
    await writeQueuesLeft(topology, server);
    const channels = async () => {
      const open = await Promise.all(commands.map((command) => server.cli('PUBSUB', command)));
      return (open as string[][]).flat().filter((name) => !isOfAProcess(name)).length;
    };
    // The last UNSUBSCRIBE is not waited for by anybody.
    await until(async () => (await channels()) === 0, { timeoutMs: 1_000 }).catch(() => undefined);
    const sizes = { channels: await channels() };
    topology.scribe.write({ type: 'usage', at: labNow(), process: 'redis', sizes });
  }
};

/** Ends a round: everybody stops, and what is left is written down, once no hold is there for a minimum time. */
export const settle = async (topology: Topology, name: string): Promise<void> => {
  await Promise.all(topology.seats.map((seat) => seat.stop()));
  await sleep(LONGEST_MINIMUM_MS);
  await writeWhatIsLeft(topology, `${SETTINGS.keyPrefix}${name}:*`);
};

/** A place in line that nobody keeps, and what a killed worker had, is over by then. */
const ALL_IS_OVER_MS = 8_000;

/** Takes each key that everybody wanted once more, in every worker: none is dead. */
const takeAll = async ({ seats }: Topology): Promise<void> => {
  for (const key of WANTED_KEYS) {
    for (const seat of seats)
      await seat.perform({ style: AFTERWARDS, keys: [key], waitMs: ALL_IS_OVER_MS, steps: [] });
  }
};

/** Calm, then the faults, then calm again; and a verdict on all that happened. */
export const runRound = async (topology: Topology, plan: RoundPlan): Promise<RoundResult> => {
  const { name, seed, schedule, callers } = plan;
  topology.takeHistory();
  const beganAt = labNow();
  topology.begin(name);
  const { shape } = topology.fitness;
  const load: Load = { ...DEFAULT_LOAD, seed, callers, ...LOADS[shape] };
  topology.apps?.start();
  for (const seat of topology.seats) seat.begin(name, load);
  await sleep(CALM_BEFORE_MS);
  const before = { from: beganAt + WARM_UP_MS, to: labNow() };
  const inflicted = await conduct(topology, schedule);
  await topology.heal();
  const overAt = labNow();
  topology.scribe.note('all faults are over');
  await sleep(RECOVERY_MS + CALM_AFTER_MS);
  const calm: Calm = { before, after: { from: overAt + RECOVERY_MS, to: labNow() } };
  const broken: Violation[] = [];
  try {
    await settle(topology, name);
    if (shape !== 'one') await takeAll(topology);
  } catch (error) {
    broken.push({ rule: 'laboratory', at: labNow(), text: `the round did not end: ${String(error)}` });
  }
  const events = topology.takeHistory();
  const instances = instancesOf(topology);
  const circumstances = { shape, instances, watchdogMs: SETTINGS.watchdogMs, calm };
  const judged = (piece: readonly HistoryEvent[]): Violation[] => judge(piece, circumstances);
  const violations = [...judged(events), ...broken];
  return { plan, topology: topology.name, shape, events, inflicted, violations, judge: judged };
};
