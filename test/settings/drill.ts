import { setImmediate as turn } from 'node:timers/promises';
import type { ExclusiveClaim, PermitClaim } from '../../lib/core/seam/claim.js';
import type { KindStore } from '../../lib/core/seam/lock-store.js';
import type { AcquireReply } from '../../lib/core/seam/reply.js';
import type { SqlStore } from '../../lib/stores/sql/sql.store.js';
import type { LockService } from '../../lib/nest/service/lock.service.js';
import { within } from '../support/async.js';

/** A lock service as another process would have it, with its store. */
export interface DrilledApp {
  readonly locks: LockService;
  readonly store: SqlStore;
}

const WAIT = { waitMs: 10_000 };
const DRILL_MS = 15_000;
const LEASE_MS = 30_000;
/** Callers of one key, and how often each of them takes it. */
const CALLERS = 6;
const ROUNDS = 2;

/** Keys that a server could read in another way than they were written. */
const ODD_KEYS = ["o'brien", 'quote"d', 'back\\slash', '\\', 'pct%s ?', '$1 :x', 'ünï 😀', 'A', 'a', 'a '];

const nothing = (): void => undefined;

let drills = 0;

/** What two apps must be able to do on one database, whatever its settings are. Resolves with what went wrong. */
export const drill = async (apps: readonly [DrilledApp, DrilledApp]): Promise<readonly string[]> => {
  const wrong: string[] = [];
  const name = `drill-${(drills += 1)}`;
  const say = (isRight: boolean, what: string): void => void (isRight || wrong.push(what));
  for (const [what, part] of Object.entries(PARTS)) {
    try {
      await within(DRILL_MS, part(apps, `${name}-${what.replaceAll(' ', '-')}`, say), what);
    } catch (error) {
      wrong.push(`${what}: ${(error as Error).message}`);
    }
  }
  return wrong;
};

type Say = (isRight: boolean, what: string) => void;
type Part = (apps: readonly [DrilledApp, DrilledApp], name: string, say: Say) => Promise<void>;

/** Counts how many are inside at the same time. */
const crowd = () => {
  let inside = 0;
  const seen = { most: 0 };
  const section = async (): Promise<void> => {
    seen.most = Math.max(seen.most, (inside += 1));
    await turn();
    inside -= 1;
  };
  return { seen, section };
};

/** Runs callers of both apps side by side. */
const callers = async (
  apps: readonly [DrilledApp, DrilledApp],
  call: (locks: LockService, caller: number) => Promise<unknown>,
): Promise<void> => {
  const all = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let round = 0; round < ROUNDS; round += 1) await call(apps[caller % 2]!.locks, caller);
  });
  await Promise.all(all);
};

let owners = 0;
const ownerOf = (): string => `00000000-0000-8000-8000-${String((owners += 1)).padStart(12, '0')}:1`;
const exclusiveOf = (name: string): ExclusiveClaim => ({
  kind: 'exclusive',
  finalKey: `lock:${name}`,
  owner: ownerOf(),
  leaseMs: LEASE_MS,
  tokens: 1,
  waits: false,
});
const permitOf = (name: string): PermitClaim => ({ ...exclusiveOf(name), kind: 'permit', tokens: 0, of: 2 });

const tokenOf = (reply: AcquireReply): number =>
  reply.status === 'granted' && reply.token !== undefined ? reply.token : NaN;

/** Acquires claims, renews them together with one that is not held, looks at them from outside, and releases them. */
const renews = async <C extends ExclusiveClaim | PermitClaim>(
  ours: KindStore<C>,
  theirs: SqlStore,
  claims: readonly C[],
  say: Say,
): Promise<void> => {
  const { kind } = claims[0] as ExclusiveClaim | PermitClaim;
  for (const claim of claims) say((await ours.acquire(claim)).status === 'granted', `${kind}: not free`);
  const replies = await ours.extendMany([...claims, { ...claims[0]!, owner: ownerOf() }]);
  const states = replies.map(({ status }) => status).join();
  say(states === [...claims.map(() => 'held'), 'lost'].join(), `${kind}: renewals are ${states}`);
  say((await theirs.kinds[kind].peekMany(claims as never)).length === claims.length, `${kind}: no poll`);
  const left =
    (await theirs.inspect(claims[0]!.finalKey))?.holders.map(({ remainingMs }) => remainingMs) ?? [];
  say(
    left.length > 0 && left.every((ms) => ms > LEASE_MS / 2),
    `${kind}: the rest of a hold is ${left.join()} ms`,
  );
  for (const claim of claims) say((await ours.release(claim)).wasHeld, `${kind}: a release finds no hold`);
};

const PARTS: Readonly<Record<string, Part>> = {
  async 'one holder'(apps, name, say) {
    const { seen, section } = crowd();
    const tokens: number[] = [];
    await callers(apps, (locks) =>
      locks.withLock(name, WAIT, async ({ fencingToken }) => {
        tokens.push(fencingToken);
        await section();
      }),
    );
    say(seen.most === 1, `${seen.most} holders at once`);
    say(
      tokens.every((token, at) => at === 0 || token > tokens[at - 1]!),
      'a token is not greater than the one before',
    );
  },

  async 'a waiter'([one, other], name, say) {
    const [first, next, third] = [exclusiveOf(name), exclusiveOf(name), exclusiveOf(name)];
    const [ours, theirs] = [one.store.kinds.exclusive, other.store.kinds.exclusive];
    const held = await ours.acquire(first);
    const watch = theirs.watch(next, { notified: nothing, failed: nothing });
    const refused = await theirs.acquire({ ...next, waits: true });
    say(refused.status === 'taken', 'a waiter gets a lock that is held');
    say((await ours.release(first)).othersWaiting === true, 'a release sees no waiter');
    const granted = await theirs.acquire({ ...next, waits: true });
    say(tokenOf(granted) > tokenOf(held), 'the waiter gets no lock, or no greater token');
    watch.close();
    const [renewed] = await theirs.extendMany([next]);
    say(renewed?.status === 'held', `the lock of the waiter is ${renewed?.status}`);
    say((await ours.acquire(third)).status === 'taken', 'a second holder beside the waiter');
    say((await theirs.release(next)).wasHeld, 'the release of the waiter finds no lock');
    const last = await ours.acquire(third);
    say(tokenOf(last) > tokenOf(granted), 'the next one gets no lock, or no greater token');
    await ours.release(third);
  },

  async permits(apps, name, say) {
    const { seen, section } = crowd();
    await callers(apps, (locks) => locks.permits(name, { permits: 2 }).withPermit(WAIT, section));
    say(seen.most <= 2, `${seen.most} permits of 2 at once`);
  },

  async 'two keys'(apps, name, say) {
    const { seen, section } = crowd();
    const keys = [`${name}-a`, `${name}-b`];
    await callers(apps, (locks, caller) =>
      locks.withLock(caller % 3 === 0 ? keys.toReversed() : keys, WAIT, section),
    );
    say(seen.most === 1, `${seen.most} holders of two keys at once`);
  },

  async renewals([one, other], name, say) {
    const locks = Array.from({ length: 3 }, (_, at) => exclusiveOf(`${name}-${at}`));
    await renews(one.store.kinds.exclusive, other.store, locks, say);
    const permits = Array.from({ length: 2 }, () => permitOf(`${name}-permit`));
    await renews(one.store.kinds.permit, other.store, permits, say);
  },

  async 'odd keys'([one, other], name, say) {
    const keys = ODD_KEYS.map((odd) => `${name}:${odd}`);
    const leases = await Promise.all(keys.map((key) => one.locks.acquire(key)));
    for (const key of keys) {
      say((await other.locks.tryAcquire(key)) === null, `two holders of ${key}`);
      say((await other.locks.inspect(key))?.holders.length === 1, `no holder of ${key} is seen`);
    }
    const { locks } = await other.locks.list({ prefix: name });
    say(locks.length === keys.length, `${locks.length} of ${keys.length} locks are listed`);
    const ended = await Promise.all(leases.map((lease) => lease.release()));
    say(
      ended.every((outcome) => outcome === 'released'),
      `releases of odd keys: ${ended.join()}`,
    );
  },

  async 'force-unlock'([one, other], name, say) {
    const lease = await one.locks.acquire(name);
    say(await other.locks.forceUnlock(name), 'forceUnlock finds no lock');
    const next = await other.locks.tryAcquire(name);
    say(next !== null && next.fencingToken > lease.fencingToken, 'no lock after forceUnlock');
    say((await lease.release()) !== 'released', 'a lock that was ended is released');
    say((await next?.release()) === 'released', 'the lock after forceUnlock is lost');
    const permit = await one.locks.permits(`${name}-p`, { permits: 1 }).acquire();
    say(await other.locks.forceUnlock(`${name}-p`), 'forceUnlock finds no permit');
    await permit.release();
  },

  async notes([one, other], name, say) {
    await one.store.processes.write(name, "it's \\ noted", LEASE_MS);
    const [text] = await other.store.processes.read([name]);
    say(text === "it's \\ noted", `a note reads ${text}`);
    await one.store.processes.remove(name);
  },
};
