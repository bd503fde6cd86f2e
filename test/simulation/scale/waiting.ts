import type { Lease } from '../../../lib/core/lease/lease.js';
import { Random } from '../engine/random.js';
import { between, perEach, type Cost } from './cost.js';
import { Crowd, KEY_PREFIX, patient, type Member, type Wanted } from './crowd.js';
import { queueKeysOf } from './queue-keys.js';
import { shown, type Table } from './table.js';

const KEY = 'held';
const CALLERS = 10;
/** The process that holds the lock. */
const HOLDER = 9_999;
/** Callers begin to wait within this time, in ms. */
const START_MS = 1_000;
/** From here on everybody is subscribed and has been refreshed once, in ms. */
const SETTLED_MS = 5_000;
const SECONDS = 30;
/** More than it takes until the next caller has the lock, in ms. */
const LONGEST_HAND_OVER_MS = 5_000;

type WaitingKind = 'exclusive' | 'fair' | 'write' | 'permit';

const TITLES: Readonly<Record<WaitingKind, string>> = {
  exclusive: 'exclusive',
  fair: 'fair',
  write: 'read-write, all write',
  permit: 'one permit',
};

/** What callers cost that only wait. */
interface WaitingResult {
  readonly kind: WaitingKind;
  readonly processes: number;
  readonly perSecond: Cost;
  readonly subscriptions: { readonly channels: number; readonly receivers: number };
  readonly queueBytes: number;
  /** What the server does for the one request that releases the lock. */
  readonly release: Cost;
  /** Requests of all processes until the next caller has the lock, with the release. */
  readonly requestsUntilNext: number;
  readonly handOverMs: number;
}

const measure = async (crowd: Crowd, kind: WaitingKind, processes: number): Promise<WaitingResult> => {
  const { agenda, server } = crowd;
  const wanted: Wanted = kind === 'permit' ? { kind, permits: 1 } : { kind };
  const failures: unknown[] = [];
  const leases: Lease[] = [];
  const acquire = (member: Member): void =>
    void member.manager.acquire([KEY], patient(member, wanted)).then(
      (lease) => leases.push(lease),
      (error: unknown) => failures.push(error),
    );
  const passUntil = async (until: number, isOver = (): boolean => false): Promise<void> => {
    await agenda.pass(until, () => failures.length > 0 || isOver());
    if (failures.length > 0) throw failures[0];
  };

  const holder = crowd.add(HOLDER);
  holder.process.arrive(() => acquire(holder));
  await passUntil(100, () => leases.length > 0);
  for (const member of crowd.addMany(processes)) {
    const dice = new Random(`start of ${member.process.name}`);
    for (let c = 0; c < CALLERS; c++) {
      agenda.at(agenda.now + dice.between(0, START_MS), () => member.process.arrive(() => acquire(member)));
    }
  }
  await passUntil(SETTLED_MS);
  const before = server.cost;
  await passUntil(SETTLED_MS + SECONDS * 1_000);
  const perSecond = perEach(between(before, server.cost), SECONDS);
  const { subscriptions } = server;
  const queueBytes = server.memoryOf(queueKeysOf(kind === 'write' ? 'read-write' : kind, KEY_PREFIX + KEY));

  const released = server.nextOf(holder.process.name);
  const [from, before2] = [agenda.now, server.cost];
  holder.process.arrive(() => void leases[0]!.release());
  await passUntil(from + LONGEST_HAND_OVER_MS, () => leases.length > 1);
  const { requests } = between(before2, server.cost);
  const handOverMs = agenda.now - from;
  return {
    kind,
    processes,
    perSecond,
    subscriptions,
    queueBytes,
    release: await released,
    requestsUntilNext: requests,
    handOverMs,
  };
};

const SIZES: Readonly<Record<WaitingKind, readonly number[]>> = {
  exclusive: [10, 100, 1_000],
  fair: [10, 100],
  write: [10, 100],
  permit: [10, 100, 1_000],
};

/** Measures callers that wait for one holder and do nothing else, and then what its release costs. */
export const measureWaiting = async (seed: number, sizes?: readonly number[]): Promise<readonly Table[]> => {
  const results: WaitingResult[] = [];
  for (const kind of Object.keys(SIZES) as WaitingKind[]) {
    for (const processes of SIZES[kind].filter((size) => sizes?.includes(size) ?? true)) {
      results.push(await Crowd.with(seed, (crowd) => measure(crowd, kind, processes)));
    }
  }
  const name = ({ kind, processes }: WaitingResult): string =>
    `${TITLES[kind]}, ${shown(processes)} × ${CALLERS}`;
  const waiting: Table = {
    title: `Callers that only wait, ${SECONDS} s`,
    head: [
      'processes × callers',
      'requests/s',
      'per process and s',
      'bytes/s',
      'commands/s',
      'entries read/s',
      'messages/s',
      'channels',
      'subscribers',
      'queue',
      'queue per process',
    ],
    rows: results.map((one) => [
      name(one),
      shown(one.perSecond.requests),
      shown(one.perSecond.requests / one.processes),
      shown(one.perSecond.bytes),
      shown(one.perSecond.commands),
      shown(one.perSecond.entries),
      shown(one.perSecond.messages),
      shown(one.subscriptions.channels),
      shown(one.subscriptions.receivers),
      `${shown(one.queueBytes / 1_000)} kB`,
      `${shown(one.queueBytes / one.processes)} B`,
    ]),
  };
  const release: Table = {
    title: 'Then one release',
    head: [
      'processes × callers',
      'commands',
      'entries read',
      'messages',
      'requests until the next caller has the lock',
      'time until then',
    ],
    rows: results.map((one) => [
      name(one),
      shown(one.release.commands),
      shown(one.release.entries),
      shown(one.release.messages),
      shown(one.requestsUntilNext),
      `${shown(one.handOverMs)} ms`,
    ]),
  };
  return [waiting, release];
};
