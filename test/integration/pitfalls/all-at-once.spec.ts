import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockError, type Lease } from 'nest-redis-lock';
import { collectUnhandledRejections, until } from '../../support/async.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { Lab, newKey } from '../../support/redis/lab.js';
import type { OpenLocks } from '../../support/redis/open-locks.js';

const DURATION_MS = Number(process.env['PITFALLS_MS'] ?? 5_000);
const SEED = Number(process.env['PITFALLS_SEED'] ?? 20_260_101);
const SERVICES = 3;
const CALLERS = 4;
const KEYS = 2;

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start({ appendFsync: 'always' });
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

/** The same numbers for the same seed (mulberry32). */
const randomOf = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** Everybody who believes to hold a key, and every token in the order of the grants. */
class Register {
  readonly violations: string[] = [];
  readonly tokens = new Map<string, number[]>();
  private readonly believers = new Map<string, Set<Lease>>();

  enter(lease: Lease): void {
    for (const key of lease.keys) {
      const believers = this.believers.get(key) ?? new Set();
      this.believers.set(key, believers);
      for (const other of believers) {
        if (other.remainingMs() > 0) this.violations.push(`two hold ${key} at the same time`);
      }
      believers.add(lease);
      const tokens = this.tokens.get(key) ?? [];
      this.tokens.set(key, [...tokens, lease.tokenFor(key)]);
    }
  }

  leave(lease: Lease): void {
    for (const key of lease.keys) this.believers.get(key)?.delete(lease);
  }
}

describe('everything at once: cut, delayed, swallowed and half-open connections, killed clients, flushed scripts', () => {
  it(`no two ever hold a key, tokens grow, everybody is served afterwards, and nothing is left (seed ${SEED})`, async () => {
    const random = randomOf(SEED);
    const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!;
    const unhandled = collectUnhandledRejections();
    const proxies: TcpProxy[] = [];
    const services: OpenLocks[] = [];
    for (let i = 0; i < SERVICES; i += 1) {
      const proxy = await lab.proxy();
      proxies.push(proxy);
      services.push(lab.open({ watchdogMs: 1_000, commandTimeoutMs: 200, waitMs: 2_000 }, proxy.url));
    }
    const keys = Array.from({ length: KEYS }, () => newKey());
    const register = new Register();
    const foreignErrors: unknown[] = [];
    let running = true;
    let grants = 0;

    const visit = async (lease: Lease): Promise<void> => {
      register.enter(lease);
      grants += 1;
      await sleep(random() < 0.1 ? 300 : random() * 5);
      if (random() < 0.2) await lease.extend(1_500).catch(() => undefined);
      register.leave(lease);
    };
    const call = async ({ locks }: OpenLocks): Promise<void> => {
      const wanted = random() < 0.2 ? keys : pick(keys);
      const options = {
        ...(random() < 0.3 && { leaseMs: 50 + Math.floor(random() * 500) }),
        ...(random() < 0.2 && { signal: AbortSignal.timeout(Math.ceil(random() * 300)) }),
        ...(random() < 0.2 && { waitMs: Math.floor(random() * 200) }),
      };
      if (random() < 0.7) return locks.withLock(wanted, options, visit);
      const lease = await locks.tryAcquire(wanted, options);
      if (!lease) return;
      await visit(lease);
      await lease.release();
    };
    const caller = async (service: OpenLocks): Promise<void> => {
      while (running) {
        await call(service).catch((error: unknown) => {
          if (!(error instanceof LockError)) foreignErrors.push(error);
          return sleep(random() * 20);
        });
      }
    };
    const faults: readonly ((proxy: TcpProxy) => unknown)[] = [
      (proxy) => proxy.cut(),
      (proxy) => pick(proxy.connections)?.cut(),
      (proxy) => pick(proxy.connections)?.blackhole(),
      (proxy) => pick(proxy.connections)?.blackhole(['toServer']),
      (proxy) => pick(proxy.connections)?.blackhole(['toClient']),
      (proxy) => pick(proxy.connections)?.swallowReplies(),
      (proxy) => proxy.delay(random() * 250),
      (proxy) => proxy.refuse(),
      () => lab.admin.call('CLIENT', 'KILL', 'TYPE', pick(['normal', 'pubsub']), 'SKIPME', 'yes'),
      () => lab.admin.script('FLUSH'),
      () => lab.admin.call('CLIENT', 'PAUSE', Math.ceil(random() * 300), pick(['ALL', 'WRITE'])),
    ];

    const callers = services.flatMap((service) => Array.from({ length: CALLERS }, () => caller(service)));
    const endsAt = performance.now() + DURATION_MS;
    while (performance.now() < endsAt) {
      const proxy = pick(proxies);
      await pick(faults)(proxy);
      await sleep(random() * 150);
      // What was held back arrives late.
      if (random() < 0.7) await proxy.restore();
      await sleep(random() * 60);
    }
    for (const proxy of proxies) await proxy.restore();
    running = false;
    await Promise.all(callers);

    expect(register.violations).toEqual([]);
    for (const tokens of register.tokens.values()) {
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    }
    expect(foreignErrors).toEqual([]);
    expect(grants).toBeGreaterThan(20);
    for (const { locks } of services) {
      await until(() => locks.withLock(keys, { waitMs: 5_000 }, () => true), {
        what: 'everybody is served again',
      });
    }
    await lab.nothingLeft(...services);
    expect(await unhandled.finish()).toEqual([]);
  });
});
