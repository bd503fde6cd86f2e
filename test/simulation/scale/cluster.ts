import type { Lease } from '../../../lib/core/lease/lease.js';
import { Random } from '../engine/random.js';
import { asMaster, MASTERS, ofCluster } from './cluster-store.js';
import { between, perEach, type Cost } from './cost.js';
import { Crowd, patient, type MakeStore, type Member } from './crowd.js';
import { shown, type Table } from './table.js';

const KEYS = 100_000;
const PROCESSES = 10;
const CALLERS = 100;
const HOLDS = 10_000;
const HOLDER = 9_999;
/** How long a caller holds a random key, in ms. */
const HOLD_MS = 200;
const WARM_UP_MS = 1_000;
const MEASURED_MS = 1_000;
const HOLDING_S = 30;

/** What one server, or a cluster, came to. */
interface KeysResult {
  readonly locks: number;
  readonly perLock: Cost;
  readonly connections: number;
  readonly opening: Cost;
  /** Of all processes in a second, while no lock is in use. */
  readonly idle: Cost;
  readonly holding: Cost;
  readonly waiting: Cost;
  readonly subscriptions: { readonly channels: number; readonly receivers: number };
  readonly waitingConnections: number;
}

/** Runs something on virtual time until it is over. */
const finish = async ({ agenda }: Crowd, member: Member, work: () => Promise<unknown>): Promise<void> => {
  let isOver = false;
  let failure: unknown;
  member.process.arrive(() => {
    work()
      .catch((error: unknown) => (failure = error))
      .finally(() => (isOver = true));
  });
  await agenda.pass(agenda.now + 120_000, () => isOver);
  if (!isOver || failure !== undefined) throw failure ?? new Error('it takes too long');
};

/** Takes keys of all masters in one process: what it costs to have connections to them. */
const opening = async (crowd: Crowd, member: Member): Promise<Cost> => {
  const before = crowd.server.cost;
  let locks = 0;
  await finish(crowd, member, async () => {
    // Enough keys to meet every master.
    for (let i = 0; i < 10 * MASTERS; i++, locks++) {
      const lease = await member.manager.acquire([`first ${i}`], patient(member, { kind: 'exclusive' }));
      await lease.release();
    }
  });
  const cost = between(before, crowd.server.cost);
  return { ...cost, requests: cost.requests - 2 * locks };
};

/** Callers that take random keys, which are mostly free. */
const randomKeys = async (
  crowd: Crowd,
  members: readonly Member[],
): Promise<Pick<KeysResult, 'locks' | 'perLock'>> => {
  const { agenda, server } = crowd;
  let locks = 0;
  let isOver = false;
  const failures: unknown[] = [];
  const run = async (member: Member, dice: Random): Promise<void> => {
    while (!isOver) {
      const key = `key ${dice.whole(1, KEYS)}`;
      const lease = await member.manager.acquire([key], patient(member, { kind: 'exclusive' }));
      locks += 1;
      await member.process.sleep(HOLD_MS);
      await lease.release();
    }
  };
  let running = 0;
  for (const member of members) {
    for (let c = 0; c < CALLERS; c++) {
      const dice = new Random(`keys of ${member.process.name} ${c}`);
      running += 1;
      agenda.at(agenda.now + dice.between(0, 50), () =>
        member.process.arrive(
          () =>
            void run(member, dice)
              .catch((error: unknown) => failures.push(error))
              .finally(() => (running -= 1)),
        ),
      );
    }
  }
  await agenda.pass(agenda.now + WARM_UP_MS);
  const [before, locksBefore] = [server.cost, locks];
  await agenda.pass(agenda.now + MEASURED_MS);
  const cost = between(before, server.cost);
  const measured = locks - locksBefore;
  isOver = true;
  await agenda.pass(agenda.now + WARM_UP_MS, () => running === 0);
  if (failures.length > 0) throw failures[0];
  return { locks: measured, perLock: perEach(cost, measured) };
};

/** One process takes all these keys, and keeps them. */
const hold = async (crowd: Crowd, holder: Member): Promise<readonly Lease[]> => {
  const leases: Lease[] = [];
  await finish(crowd, holder, async () => {
    for (let i = 1; i <= HOLDS; i += CALLERS) {
      const keys = Array.from({ length: CALLERS }, (_none, c) => `key ${i + c}`);
      leases.push(
        ...(await Promise.all(
          keys.map((key) => holder.manager.acquire([key], patient(holder, { kind: 'exclusive' }))),
        )),
      );
    }
  });
  return leases;
};

const perSecond = async ({ agenda, server }: Crowd): Promise<Cost> => {
  const before = server.cost;
  await agenda.pass(agenda.now + HOLDING_S * 1_000);
  return perEach(between(before, server.cost), HOLDING_S);
};

const measure = async (crowd: Crowd, makeStore: MakeStore | undefined): Promise<KeysResult> => {
  const { agenda, server } = crowd;
  const members = crowd.addMany(PROCESSES, makeStore);
  const opened = await opening(crowd, members[0]!);
  const connections = members[0]!.openConnections;
  const random = await randomKeys(crowd, members);
  const idle = await perSecond(crowd);
  const holder = crowd.add(HOLDER, makeStore);
  await hold(crowd, holder);
  const idleAndHolding = await perSecond(crowd);
  const failures: unknown[] = [];
  let next = 0;
  for (const member of members) {
    for (let c = 0; c < CALLERS; c++) {
      const key = `key ${(next += 1)}`;
      member.process.arrive(
        () =>
          void member.manager
            .acquire([key], patient(member, { kind: 'exclusive' }))
            .then(() => failures.push(new Error(`${key} was free`)))
            .catch((error: unknown) => failures.push(error)),
      );
    }
  }
  await agenda.pass(agenda.now + 5_000);
  const both = await perSecond(crowd);
  if (failures.length > 0) throw failures[0];
  return {
    ...random,
    connections,
    opening: opened,
    idle,
    holding: between(idle, idleAndHolding),
    waiting: between(idleAndHolding, both),
    subscriptions: server.subscriptions,
    waitingConnections: members[0]!.openConnections - connections,
  };
};

/** Measures many keys, on one server and on a cluster of many masters. */
export const measureCluster = async (seed: number): Promise<readonly Table[]> => {
  const one = await Crowd.with(seed, (crowd) => measure(crowd, undefined));
  const many = await Crowd.with(seed, (crowd) => measure(crowd, ofCluster), asMaster);
  const row = (name: string, show: (result: KeysResult) => string): readonly string[] => [
    name,
    show(one),
    show(many),
  ];
  const waiting = PROCESSES * CALLERS;
  return [
    {
      title: `${shown(KEYS)} keys, ${PROCESSES} processes × ${CALLERS} callers`,
      head: ['', 'one server', `${MASTERS} masters`],
      rows: [
        row('connections of a process for commands', (r) => shown(r.connections)),
        row('requests to open them', (r) => shown(r.opening.requests)),
        row('random keys: locks measured', (r) => shown(r.locks)),
        row('random keys: requests per lock', (r) => shown(r.perLock.requests)),
        row('random keys: bytes per lock', (r) => shown(r.perLock.bytes)),
        row('random keys: commands per lock', (r) => shown(r.perLock.commands)),
        row('random keys: messages per lock', (r) => shown(r.perLock.messages)),
        row(`${PROCESSES} idle processes: requests/s`, (r) => shown(r.idle.requests)),
        row(`${PROCESSES} idle processes: bytes/s`, (r) => shown(r.idle.bytes)),
        row(`${shown(HOLDS)} holds of one process: requests/s`, (r) => shown(r.holding.requests)),
        row(`${shown(HOLDS)} holds of one process: bytes/s`, (r) => shown(r.holding.bytes)),
        row(`${shown(HOLDS)} holds of one process: commands/s`, (r) => shown(r.holding.commands)),
        row(`${shown(waiting)} callers wait for as many keys: requests/s`, (r) => shown(r.waiting.requests)),
        row(`${shown(waiting)} callers wait for as many keys: bytes/s`, (r) => shown(r.waiting.bytes)),
        row(`${shown(waiting)} callers wait for as many keys: channels`, (r) =>
          shown(r.subscriptions.channels),
        ),
        row(`${shown(waiting)} callers wait for as many keys: subscribers`, (r) =>
          shown(r.subscriptions.receivers),
        ),
        row('connections of a process for messages, then', (r) => shown(r.waitingConnections)),
      ],
    },
  ];
};
