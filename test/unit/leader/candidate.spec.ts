import { beforeEach, describe, expect, it } from 'vitest';
import type { Candidate, LeadershipEnd, Leadership } from 'nest-redis-lock';
import { currentLease, LockConfigurationError, LockService } from 'nest-redis-lock';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { resolveSettings, type LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { deferred, type Deferred } from '../../support/async.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const WATCHDOG_MS = 3_000;

let runtime: VirtualRuntime;
let space: MemorySpace;

beforeEach(() => {
  runtime = new VirtualRuntime();
  space = new MemorySpace({ now: () => runtime.now() });
});

/** A call of the function of a candidate, which lasts until the test ends it. */
interface Call extends Deferred<unknown> {
  readonly leadership: Leadership;
}

/** A process with one candidate, whose function lasts as long as the test says. */
class Process {
  readonly store = new MemoryStore({ shared: space });
  readonly log = new Log();
  readonly manager: LockManager;
  readonly locks: LockService;
  readonly calls: Call[] = [];
  readonly events: [string, LeadershipEnd?][] = [];

  constructor(settings: LockSettingsInput = {}) {
    const resolved = resolveSettings({ watchdogMs: WATCHDOG_MS, holderInfo: false, ...settings });
    this.manager = new LockManager(this.store, resolved, this.log, runtime);
    this.locks = new LockService(this.manager);
    this.locks.on('leader-elected', () => void this.events.push(['elected']));
    this.locks.on('leader-lost', ({ reason }) => void this.events.push(['lost', reason]));
  }

  get last(): Call {
    return this.calls.at(-1)!;
  }

  lead(work?: (call: Call) => unknown): Candidate {
    return this.locks.lead('k', (leadership) => {
      const call = { ...deferred<unknown>(), leadership };
      this.calls.push(call);
      return work ? work(call) : call.promise;
    });
  }
}

/** Ends its work as soon as it leads no longer. */
const obedient = ({ leadership: { signal } }: Call) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

describe('candidates of several processes', () => {
  it('lead one after the other, in the order of their arrival, each with a greater token', async () => {
    const processes = [new Process(), new Process(), new Process()];
    const candidates: Candidate[] = [];
    for (const process of processes) {
      candidates.push(process.lead(obedient));
      await settled();
    }
    const tokens: number[] = [];
    for (const [at, candidate] of candidates.entries()) {
      await runtime.pass(10 * WATCHDOG_MS);
      expect(candidates.map(({ isLeader }) => isLeader)).toEqual([0, 1, 2].map((one) => one === at));
      expect(processes.map(({ calls }) => calls.length)).toEqual([0, 1, 2].map((one) => (one > at ? 0 : 1)));
      tokens.push(processes[at]!.last.leadership.fencingToken);
      await candidate.stop();
    }
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(3);
    await runtime.pass(1_000);
    for (const { events, locks } of processes) {
      expect(events).toEqual([['elected'], ['lost', 'stopped']]);
      expect(locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    }
  });

  it('a leader that is frozen past its lease does not believe to lead before the next one does', async () => {
    const [first, second] = [new Process(), new Process()];
    const leader = first.lead(obedient);
    await settled();
    const next = second.lead(obedient);
    await settled();
    // The first process hears of no timer, and reads its own clock.
    first.store.kinds.exclusive.extendMany = () => new Promise(() => undefined);
    let overlaps = 0;
    for (let ms = 0; ms < 2 * WATCHDOG_MS; ms += 50) {
      await runtime.pass(50);
      if (leader.isLeader && next.isLeader) overlaps += 1;
      if (next.isLeader) expect(first.last.leadership.signal.aborted).toBe(true);
    }
    expect([next.isLeader, overlaps]).toEqual([true, 0]);
    expect(first.events).toEqual([['elected'], ['lost', 'expired']]);
    expect(first.last.leadership.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });

  it('isLeader is false when the lease is over, although no timer has fired', async () => {
    const one = new Process();
    const candidate = one.lead(obedient);
    await settled();
    runtime.jump(WATCHDOG_MS);
    expect(candidate.isLeader).toBe(false);
  });
});

describe('the function of a candidate', () => {
  it('may resolve: the leadership goes on until it is stopped', async () => {
    const one = new Process();
    const candidate = one.lead(() => undefined);
    await runtime.pass(10 * WATCHDOG_MS);
    expect([candidate.isLeader, one.calls.length]).toEqual([true, 1]);
    expect(one.last.leadership.signal.aborted).toBe(false);
    await candidate.stop();
    expect([candidate.isLeader, space.inspect('lock:k')]).toEqual([false, null]);
    expect(one.last.leadership.signal.reason).toMatchObject({ code: 'LOCK_ABORTED', key: 'k' });
  });

  it('that ignores its signal is never called again before its last call has settled', async () => {
    const one = new Process();
    const candidate = one.lead();
    await settled();
    await one.locks.forceUnlock('k');
    await runtime.pass(10 * WATCHDOG_MS);
    expect([candidate.isLeader, one.calls.length]).toEqual([false, 1]);
    expect(space.inspect('lock:k')).toBeNull();
    one.last.resolve(undefined);
    await runtime.pass(0);
    expect([candidate.isLeader, one.calls.length]).toEqual([true, 2]);
    expect(one.events).toEqual([['elected'], ['lost', 'force-unlocked'], ['elected']]);
  });

  it('keeps the lock after resign() until it has settled, and then goes behind the others', async () => {
    const [one, other] = [new Process(), new Process()];
    const candidate = one.lead();
    await settled();
    const next = other.lead(obedient);
    const { resign, signal } = one.last.leadership;
    resign();
    await runtime.pass(WATCHDOG_MS);
    expect([candidate.isLeader, signal.aborted, next.isLeader]).toEqual([false, true, false]);
    one.last.resolve(undefined);
    await runtime.pass(100);
    expect(next.isLeader).toBe(true);
    await next.stop();
    await runtime.pass(2_000);
    expect([candidate.isLeader, one.calls.length]).toEqual([true, 2]);
    expect(one.events).toEqual([['elected'], ['lost', 'resigned'], ['elected']]);
  });

  it('resign() alone is followed by a pause, so that no process spins', async () => {
    const one = new Process();
    one.lead(({ leadership }) => leadership.resign());
    await runtime.pass(10_000);
    // 1.5 s each.
    expect(one.calls.length).toBe(7);
  });

  it('that rejects releases the lock, is logged, and is called again after 1 to 30 s', async () => {
    const one = new Process();
    const at: number[] = [];
    const causes: unknown[] = [];
    one.locks.on('leader-lost', ({ reason, cause }) => void causes.push([reason, cause]));
    const broken = new Error('no index');
    one.lead(() => {
      at.push(runtime.now());
      throw broken;
    });
    await runtime.pass(120_000);
    // Random numbers of the virtual runtime are 0.5.
    expect(at.slice(1).map((time, i) => time - at[i]!)).toEqual([
      1_500, 3_000, 6_000, 12_000, 22_500, 22_500, 22_500, 22_500,
    ]);
    expect(causes[0]).toEqual(['rejected', broken]);
    expect(one.log.lines.filter((line) => line.includes('no index'))[0]).toMatch(
      /^Leader of "k": the leader failed\. This process contends again in 1500 ms\. Error: no index\n/,
    );
    expect(space.inspect('lock:k')).toBeNull();
  });

  it('that led for long before it rejects is called again after the shortest pause', async () => {
    const one = new Process();
    const at: number[] = [];
    one.lead((call) => {
      at.push(runtime.now());
      return call.promise;
    });
    for (const _time of [1, 2, 3]) {
      await runtime.pass(40_000);
      one.last.reject(new Error('at last'));
      await runtime.pass(1_500);
      expect(one.log.lines.at(-2)).toContain('again in 1500 ms');
    }
    expect(at).toHaveLength(4);
  });

  it('lets another process lead while it pauses after an error', async () => {
    const [one, other] = [new Process(), new Process()];
    one.lead(() => Promise.reject(new Error('no index')));
    await settled();
    const next = other.lead(obedient);
    await runtime.pass(500);
    expect(next.isLeader).toBe(true);
  });

  it('is not called again after a configuration error, which is logged', async () => {
    const one = new Process();
    const candidate = one.lead(() => one.locks.withLock('x', { waitMs: -1 }, () => undefined));
    await runtime.pass(120_000);
    expect([candidate.isLeader, one.calls.length]).toEqual([false, 1]);
    expect(one.log.lines.join('\n')).toMatch(/does not contend any more.*waitMs must be/s);
    // Its key is free for another candidate.
    one.lead(obedient);
  });

  it('that fails because its signal aborted is no error, and another failure of its end is logged', async () => {
    const one = new Process();
    const candidate = one.lead();
    await settled();
    await one.locks.forceUnlock('k');
    one.last.reject(one.last.leadership.signal.reason);
    await settled();
    expect(one.log.lines.join('\n')).not.toContain('failed');
    await one.locks.forceUnlock('k');
    one.last.reject(new Error('no disk'));
    await settled();
    expect(one.log.lines.join('\n')).toMatch(
      /Leader of "k": the leader failed after the end: Error: no disk/,
    );
    expect(one.events.filter(([, reason]) => reason === 'rejected')).toEqual([]);
    void candidate;
  });

  it.each([
    [
      'a revoked proxy',
      () => {
        const { proxy, revoke } = Proxy.revocable(new Error('x'), {});
        revoke();
        return proxy;
      },
    ],
    [
      'an error whose name throws',
      () =>
        Object.defineProperty(new Error('x'), 'name', {
          get: () => {
            throw new Error('no name');
          },
        }),
    ],
  ])('that rejects with %s releases the lock, and is called again', async (_, thrown) => {
    const one = new Process();
    one.lead();
    await settled();
    one.last.leadership.resign();
    one.last.reject(thrown());
    await settled();
    expect(await one.locks.isLocked('k')).toBe(false);
    await runtime.pass(2_000);
    one.last.reject(thrown());
    await settled();
    await runtime.pass(2_000);
    expect(one.calls).toHaveLength(3);
  });

  it('keeps the lock until a nested call has ended, too', async () => {
    const one = new Process();
    const nested = deferred<void>();
    one.lead(async ({ leadership: { resign } }) => {
      const job = one.locks.withLock('k', { inside: currentLease() }, () => nested.promise);
      job.catch(() => undefined);
      resign();
    });
    await settled();
    expect(await one.locks.isLocked('k')).toBe(true);
    nested.resolve();
    await settled();
    expect(await one.locks.isLocked('k')).toBe(false);
  });

  it('runs in a section of its lock, so that it may acquire others while the app stops', async () => {
    const one = new Process();
    one.lead(async ({ leadership: { signal } }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await one.locks.withLock('last write', () => undefined);
      one.events.push(['written']);
    });
    await settled();
    const closed = watched(one.manager.close());
    await settled();
    await settled();
    expect(one.events).toEqual([['elected'], ['lost', 'shutdown'], ['written']]);
    await runtime.pass(1_000);
    expect(closed.state).toBe('fulfilled');
  });
});

describe('the end of a candidate', () => {
  it('stop() resolves when the function has settled and the lock is released', async () => {
    const one = new Process();
    const candidate = one.lead();
    await settled();
    const stopped = watched(candidate.stop());
    await runtime.pass(1_000);
    expect([stopped.state, one.last.leadership.signal.aborted]).toEqual(['pending', true]);
    one.last.resolve(undefined);
    await settled();
    expect([stopped.state, space.inspect('lock:k')]).toEqual(['fulfilled', null]);
  });

  it('stop() waits for the reply of the release', async () => {
    const one = new Process();
    const candidate = one.lead(obedient);
    await settled();
    const { exclusive } = one.store.kinds;
    const release = exclusive.release.bind(exclusive);
    const replies = deferred();
    exclusive.release = async (...args) => {
      await replies.promise;
      return release(...args);
    };
    const stopped = watched(candidate.stop());
    await runtime.pass(1_000);
    expect(stopped.state).toBe('pending');
    replies.resolve();
    await settled();
    expect(stopped.state).toBe('fulfilled');
  });

  it('stop() ends a wait in the queue, and a pause after an error', async () => {
    const [one, other] = [new Process(), new Process()];
    one.lead(obedient);
    await settled();
    const waiting = other.lead();
    await settled();
    await waiting.stop();
    expect(other.locks.usage.leases).toBe(0);
    const third = new Process();
    await one.manager.close();
    const pausing = third.lead(() => Promise.reject(new Error('no index')));
    await runtime.pass(100);
    expect(third.calls).toHaveLength(1);
    await pausing.stop();
    await runtime.pass(60_000);
    expect([third.calls.length, runtime.due]).toEqual([1, []]);
  });

  it('a shutdown waits for the function for shutdownGraceMs, then another process leads', async () => {
    const [one, other] = [new Process({ shutdownGraceMs: 2_000 }), new Process()];
    one.lead();
    await settled();
    const next = other.lead(obedient);
    await settled();
    one.manager.refuseNew();
    expect(one.last.leadership.signal.reason).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    const closed = watched(one.manager.close());
    await runtime.pass(1_000);
    expect([closed.state, next.isLeader]).toEqual(['pending', false]);
    one.last.resolve(undefined);
    await settled();
    await settled();
    expect(next.isLeader).toBe(true);
    await runtime.pass(1_000);
    expect(closed.state).toBe('fulfilled');
  });

  it('a shutdown does not wait longer, and the lock expires', async () => {
    const [one, other] = [new Process({ shutdownGraceMs: 2_000 }), new Process()];
    one.lead();
    await settled();
    const next = other.lead(obedient);
    const closed = watched(one.manager.close());
    await runtime.pass(4_000);
    expect(closed.state).toBe('fulfilled');
    await runtime.pass(WATCHDOG_MS);
    expect([next.isLeader, one.calls.length]).toEqual([true, 1]);
  });
});

describe('an outage of the store', () => {
  it('is survived: one attempt at a time, logged once, and the process leads soon after', async () => {
    const one = new Process();
    const { exclusive } = one.store.kinds;
    const acquire = exclusive.acquire.bind(exclusive);
    let [attempts, now, most] = [0, 0, 0];
    exclusive.acquire = async () => {
      attempts += 1;
      most = Math.max(most, (now += 1));
      await new Promise((resolve) => void runtime.setTimer(() => resolve(undefined), 100));
      now -= 1;
      throw new StoreFailure('cut', 'not-executed');
    };
    const candidate = one.lead(obedient);
    await runtime.pass(60_000);
    expect(attempts).toBeGreaterThan(10);
    expect(attempts).toBeLessThan(60);
    expect(most).toBe(1);
    const outages = (): number => one.log.lines.filter((line) => line.includes('cannot contend now')).length;
    expect(outages()).toBe(1);
    exclusive.acquire = acquire;
    await runtime.pass(2_000);
    expect(candidate.isLeader).toBe(true);
    exclusive.acquire = () => Promise.reject(new StoreFailure('cut again', 'not-executed'));
    one.last.leadership.resign();
    await runtime.pass(20_000);
    expect(outages()).toBe(2);
  });
});

describe('lead', () => {
  it('refuses a second candidate for a key until the first one has stopped', async () => {
    const one = new Process();
    const candidate = one.lead(obedient);
    expect(() => one.lead()).toThrow('This process is a candidate for "k" already');
    await candidate.stop();
    one.lead(obedient);
  });

  it('refuses what is no function, and a generator function', () => {
    const { locks } = new Process();
    for (const wrong of [undefined, 'work', {}])
      expect(() => locks.lead('k', wrong as never)).toThrow(LockConfigurationError);
    expect(() => locks.lead('k', function* () {})).toThrow('a generator function');
  });

  it('has the watchdog of its options, and neither lease nor limit of the module', async () => {
    const one = new Process({ leaseMs: 100, maxHoldMs: 5_000 });
    const candidate = one.locks.lead('k', () => undefined, { watchdogMs: 9_000, label: 'index' });
    await settled();
    expect(one.locks.held()).toMatchObject([{ key: 'k', label: 'index', remainingMs: 9_000 }]);
    await runtime.pass(60_000);
    expect(candidate.isLeader).toBe(true);
  });

  it('is renewed without options, too', async () => {
    const one = new Process({ leaseMs: 100, maxHoldMs: 5_000 });
    const candidate = one.lead();
    await runtime.pass(60_000);
    expect([candidate.isLeader, one.calls.length]).toEqual([true, 1]);
  });

  it('works without fencing: only the token is refused', async () => {
    const one = new Process({ fencing: false });
    const candidate = one.lead();
    await settled();
    expect(candidate.isLeader).toBe(true);
    expect(() => one.last.leadership.fencingToken).toThrow('fencing is off');
  });
});
