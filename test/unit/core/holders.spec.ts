import { hostname } from 'node:os';
import { beforeEach, describe, expect, it } from 'vitest';
import { LockConfigurationError, LockNotAcquiredError } from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockEvents } from '../../../lib/core/report/lock-events.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings, type LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

/** Time after its first hold in which a process has written its record. */
const RECORDED_MS = 1_000;
const PERIOD_MS = 30_000;

/** Virtual time with the ids of a real process. */
class RuntimeWithIds extends VirtualRuntime {
  override newId = systemRuntime().newId;
}

let runtime: VirtualRuntime;
let space: MemorySpace;

beforeEach(() => {
  runtime = new RuntimeWithIds();
  space = new MemorySpace({ now: () => runtime.now() });
});

/** A service that counts what it asks of the store. */
class Service {
  readonly log = new Log();
  readonly store = new MemoryStore({ shared: space });
  readonly counts = { inspect: 0, read: 0, write: 0, send: 0 };
  readonly manager: LockManager;
  readonly call: LockCall;

  constructor(input: LockSettingsInput = {}) {
    const settings = resolveSettings({ keyPrefix: '', waitMs: 0, ...input });
    for (const name of ['read', 'write', 'send'] as const) this.counted(this.store.processes, name);
    this.counted(this.store, 'inspect');
    this.manager = new LockManager(this.store, settings, this.log, runtime);
    this.call = defaultCall(settings, 'checkout');
  }

  private counted<T extends object>(target: T, name: keyof T & keyof Service['counts']): void {
    const method = (target[name] as (...args: unknown[]) => unknown).bind(target);
    Object.assign(target, {
      [name]: (...args: unknown[]) => {
        this.counts[name] += 1;
        return method(...args);
      },
    });
  }

  /** Acquires the key, and waits until this service has written its record. */
  async hold(key = 'k', call = this.call) {
    const lease = await this.manager.acquire([key], call);
    await runtime.pass(RECORDED_MS);
    await expect.poll(() => this.counts.write).toBeGreaterThan(0);
    await settled();
    return lease;
  }

  async refused(key = 'k', call = this.call): Promise<LockNotAcquiredError> {
    const acquiring = this.manager.acquire([key], call).catch((error: unknown) => error);
    await runtime.pass(50 + call.waitMs);
    const error = await acquiring;
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    return error as LockNotAcquiredError;
  }

  eventsOf<E extends keyof LockEvents>(name: E): LockEvents[E][] {
    const events: LockEvents[E][] = [];
    this.manager.on(name, (event) => void events.push(event));
    return events;
  }
}

const asSeen = (service: Service, appName: string) => ({
  ...{ instanceId: service.manager.instanceId, client: 'node' },
  ...{ host: hostname(), pid: process.pid, appName },
});

/** Waits for what needs virtual time. */
const inTime = async <T>(work: Promise<T>): Promise<T> => {
  await runtime.pass(300);
  return work;
};

describe('the holder of a key', () => {
  it('is in the error and in busy: with id, host, pid and name', async () => {
    const [holder, other] = [new Service({ appName: 'shop' }), new Service()];
    await holder.hold();
    const busy = other.eventsOf('busy');
    const { holder: shown } = await other.refused();
    expect(shown).toEqual(asSeen(holder, 'shop'));
    expect(busy).toMatchObject([{ key: 'k', holder: shown }]);
  });

  it('is in the event waiting', async () => {
    const [holder, other] = [new Service({ appName: 'shop' }), new Service()];
    await holder.hold();
    const waiting = other.eventsOf('waiting');
    const acquiring = other.manager.acquire(['k'], { ...other.call, waitMs: 2_000 }).catch(String);
    await runtime.pass(1_000);
    expect(waiting).toMatchObject([{ key: 'k', holder: asSeen(holder, 'shop') }]);
    await inTime(runtime.pass(2_000));
    await acquiring;
  });

  it('is the id alone while its process has written no record', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.manager.acquire(['k'], holder.call);
    const { holder: shown } = await other.refused();
    expect(shown).toEqual({ instanceId: holder.manager.instanceId, client: 'node' });
  });

  it('after a forced unlock is the new one, also for callers of the former one', async () => {
    const [former, next] = [new Service(), new Service({ appName: 'next' })];
    await former.hold();
    await next.manager.forceUnlock('k');
    await next.hold();
    expect((await former.refused()).holder).toEqual(asSeen(next, 'next'));
  });

  it('of this service needs no record', async () => {
    const service = new Service({ appName: 'shop' });
    await service.manager.acquire(['k'], service.call);
    expect((await service.refused()).holder).toEqual(asSeen(service, 'shop'));
    expect(service.counts).toMatchObject({ read: 0 });
  });

  it.each([
    ['exclusive', {}],
    ['fair', {}],
    ['exclusive', { waitMs: 10 }],
  ] as const)('of this service is named in the message, with its label: %s, %j', async (kind, options) => {
    const [service, other] = [new Service(), new Service()];
    const call = { ...service.call, kind, ...options };
    const lease = await service.manager.acquire(['k'], { ...call, label: 'report' });
    const message = 'The holder is a lease of "report" in this process. ';
    expect((await service.refused('k', call)).message).toContain(message);
    expect((await other.refused('k', call)).message).not.toContain('this process');
    await lease.release();
    await other.manager.acquire(['k'], call);
    expect((await service.refused('k', call)).message).not.toContain('this process');
  });

  it('has the name in package.json when the app gives none', async () => {
    const holder = new Service();
    await holder.hold();
    expect((await holder.refused()).holder).toHaveProperty('appName');
  });

  it('of a Java service is shown as such', async () => {
    const owner = '0f8fad5b-d9cb-469f-a165-70867728950e:52';
    const claim = { finalKey: 'k', owner, leaseMs: 60_000, tokens: 0, waits: false };
    space.of('exclusive').acquire({ ...claim, kind: 'exclusive' });
    const other = new Service();
    expect((await other.refused()).holder).toEqual({ instanceId: owner.slice(0, 36), client: 'java' });
    expect(other.counts.read).toBe(0);
  });

  it('is in each line of a list, also with more processes than are remembered', async () => {
    const services = Array.from({ length: 1_100 }, () => new Service({ appName: 'shop' }));
    // Each page has processes that were on an earlier one, and new ones.
    for (const [i, { manager, call }] of services.entries())
      for (const place of [i, (i * 7 + 5) % services.length])
        await manager.acquire([`${String(place).padStart(4, '0')} of ${i}`], call);
    await runtime.pass(RECORDED_MS);
    await settled();
    const unnamed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await inTime(services[0]!.manager.list({ cursor }));
      for (const { key, holders } of page.locks)
        if (holders[0]?.process?.host === undefined) unnamed.push(key);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(unnamed).toEqual([]);
  });

  it('is looked for once for all who are refused at the same time, and its record is kept', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.hold();
    const errors = await Promise.all(Array.from({ length: 20 }, () => other.refused()));
    expect(new Set(errors.map((error) => error.holder?.pid))).toEqual(new Set([process.pid]));
    expect(other.counts).toMatchObject({ inspect: 1, read: 1 });
    await other.refused();
    expect(other.counts).toMatchObject({ inspect: 2, read: 1 });
  });

  it('is not looked for where the caller gets no error', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.hold();
    const busy = other.eventsOf('busy');
    expect(await other.manager.tryAcquire(['k'], other.call)).toBeNull();
    await other.manager.acquire(['k'], { ...other.call, showsHolder: false }).catch(String);
    expect(other.counts).toMatchObject({ inspect: 0, read: 0 });
    expect(busy).toHaveLength(2);
  });

  it('delays the error by 50 ms at most when the store is slow', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.hold();
    other.store.processes.read = () => new Promise(() => undefined);
    const acquiring = other.manager.acquire(['k'], other.call).catch((error: unknown) => error);
    let isOver = false;
    void acquiring.then(() => (isOver = true));
    await runtime.pass(49);
    expect(isOver).toBe(false);
    await runtime.pass(1);
    expect(await acquiring).toHaveProperty('holder', {
      instanceId: holder.manager.instanceId,
      client: 'node',
    });
  });

  it('is unknown when the store fails, and the error is the same', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.hold();
    other.store.inspect = () => Promise.reject(new Error('no route'));
    const error = await other.refused();
    expect(error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect(error.holder).toBeUndefined();
  });

  it('is neither written nor shown with holderInfo: false', async () => {
    const [holder, other] = [new Service({ holderInfo: false }), new Service()];
    await holder.manager.acquire(['k'], holder.call);
    await runtime.pass(PERIOD_MS);
    expect(holder.counts).toMatchObject({ write: 0 });
    expect((await holder.refused()).holder).toBeUndefined();
    expect((await other.refused()).holder).toEqual({
      instanceId: holder.manager.instanceId,
      client: 'node',
    });
    expect(await holder.manager.inspect('k')).not.toHaveProperty('holders.0.process');
  });
});

describe('inspect and list', () => {
  it('show the process of each holder, and for how long it has held the key', async () => {
    const [holder, other] = [new Service({ appName: 'shop' }), new Service()];
    await holder.hold();
    await runtime.pass(500);
    const shown = await inTime(other.manager.inspect('k'));
    const { process: seen, heldMs, label } = shown!.holders[0]!;
    expect(seen).toEqual(asSeen(holder, 'shop'));
    expect(label).toBe(holder.call.label);
    expect(heldMs).toBeGreaterThanOrEqual(1_500);
    expect(heldMs).toBeLessThan(1_800);
    const { locks } = await inTime(other.manager.list({}));
    expect(locks).toMatchObject([{ key: 'k', holders: [{ process: { appName: 'shop' } }] }]);
    expect(locks[0]!.holders[0]).toHaveProperty('heldMs');
  });

  it('show the process of each holder of a permit, which is certain with its record', async () => {
    const [one, two, other] = [
      new Service({ appName: 'shop' }),
      new Service({ appName: 'crm' }),
      new Service(),
    ];
    const permit = { ...one.call, kind: 'permit', permits: 4 } as const;
    await one.hold('k', permit);
    await two.hold('k', { ...permit, label: 'sync' });
    await other.manager.acquire(['k'], permit);
    // A permit of another library, whose 16 bytes look like one of a service.
    const owner = `${'ab'.repeat(6)}8${'c'.repeat(19)}`;
    const claim = { finalKey: 'k', owner, leaseMs: 60_000, tokens: 0, waits: false, of: undefined } as const;
    space.of('permit').acquire({ ...claim, kind: 'permit' });
    const { locks } = await inTime(one.manager.list({}));
    const [{ holders = [] } = {}] = locks;
    expect(holders.map((holder) => holder.process)).toEqual([
      asSeen(one, 'shop'),
      asSeen(two, 'crm'),
      ...[undefined, undefined],
    ]);
    expect(holders.map(({ label }) => label)).toEqual(['checkout', 'sync', undefined, undefined]);
    expect(new Set(holders.map((holder) => holder.owner)).size).toBe(4);
    const { holder } = await two.refused('k', { ...permit, permits: 2 });
    expect(holder).toEqual(asSeen(one, 'shop'));
  });

  it('show the process of each waiter, also of one that has held nothing', async () => {
    const [holder, waiter, other] = [new Service(), new Service({ appName: 'worker' }), new Service()];
    const lease = await holder.hold();
    const waiting = waiter.manager.acquire(['k'], { ...waiter.call, waitMs: 60_000 });
    await runtime.pass(PERIOD_MS);
    await settled();
    const shown = await inTime(other.manager.inspect('k'));
    expect(shown?.waiting).toHaveLength(1);
    expect(shown?.waitingProcesses).toEqual([asSeen(waiter, 'worker')]);
    const { locks } = await inTime(other.manager.list({}));
    expect(locks[0]?.waitingProcesses).toEqual(shown?.waitingProcesses);
    await lease.release();
    await (await waiting).release();
    await runtime.pass(4 * PERIOD_MS);
    expect(await other.store.processes.read([waiter.manager.instanceId])).toEqual([undefined]);
  });

  it('know the holds of their own service without a question', async () => {
    const service = new Service({ appName: 'shop' });
    await service.hold();
    const [{ process: seen, heldMs } = {}] = (await service.manager.inspect('k'))!.holders;
    expect({ seen, heldMs }).toEqual({ seen: asSeen(service, 'shop'), heldMs: RECORDED_MS });
    expect(service.counts).toMatchObject({ send: 0 });
  });

  it('leave out what a process that has died does not tell', async () => {
    const [holder, other] = [new Service({ appName: 'shop' }), new Service()];
    await holder.hold();
    await holder.store.close();
    const shown = await inTime(other.manager.inspect('k'));
    expect(shown!.holders).toMatchObject([{ process: { appName: 'shop' } }]);
    expect(shown!.holders[0]).not.toHaveProperty('heldMs');
  });

  it('take at most 250 ms', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.hold();
    other.store.processes.read = () => new Promise(() => undefined);
    const inspecting = other.manager.inspect('k');
    await runtime.pass(250);
    expect((await inspecting)!.holders).toHaveLength(1);
  });

  it('survive what others have written in the place of a record or an answer', async () => {
    const [holder, other] = [new Service(), new Service()];
    await holder.hold();
    const { processes } = other.store;
    const id = holder.manager.instanceId;
    for (const text of [
      '',
      'x',
      'null',
      '[]',
      '7',
      '{"host":7,"pid":"x","appName":{}}',
      '{"k":{"heldMs":"x"}}',
    ])
      await processes.send!(id, text);
    await processes.send!(id, JSON.stringify({ answer: '../x', owners: ['a'] }));
    await processes.send!(id, '{"answer":"x","owners":[{"toString":1,"valueOf":1}]}');
    await processes.send!(id, `{"answer":"x","owners":${'['.repeat(50_000)}${']'.repeat(50_000)}}`);
    await processes.send!(id, JSON.stringify({ answer: other.manager.instanceId, owners: [] }));
    await settled();
    expect(await processes.read([other.manager.instanceId])).toEqual([undefined]);
    await processes.write(
      id,
      '{"host":7,"pid":-5,"appName":"\\u001b[31mred\\n","instanceId":"forged"}',
      60_000,
    );
    const shown = await inTime(other.manager.inspect('k'));
    expect(shown!.holders[0]!.process).toEqual({ instanceId: id, client: 'node', appName: '[31mred' });
  });
});

describe('the record of a service', () => {
  it('is renewed while it uses locks, expires when it does not, and is removed when it stops', async () => {
    const service = new Service();
    const textOf = async () => (await service.store.processes.read([service.manager.instanceId]))[0];
    const lease = await service.hold();
    await runtime.pass(10 * PERIOD_MS);
    expect(service.counts.write).toBe(11);
    expect(await textOf()).toContain(`"pid":${process.pid}`);
    await lease.release();
    await runtime.pass(2 * PERIOD_MS);
    const written = service.counts.write;
    await runtime.pass(3 * PERIOD_MS);
    expect(service.counts.write).toBe(written);
    expect(await textOf()).toBeUndefined();
    await service.hold('other');
    expect(await textOf()).toBeDefined();
    const closing = service.manager.shutDown().then(() => service.manager.close());
    await runtime.pass(60_000);
    await closing;
    expect(await new Service().store.processes.read([service.manager.instanceId])).toEqual([undefined]);
  });

  it('is not written by a service that ends within a second', async () => {
    const service = new Service();
    await (await service.manager.acquire(['k'], service.call)).release();
    await runtime.pass(RECORDED_MS - 1);
    const closing = service.manager.close();
    await runtime.pass(60_000);
    await closing;
    expect(service.counts.write).toBe(0);
  });

  it('that the store does not allow is given up, with one warning that names the rule', async () => {
    const service = new Service();
    service.store.processes.write = () => {
      service.counts.write += 1;
      return Promise.reject(new LockConfigurationError('the user lacks +set.'));
    };
    await service.hold();
    await runtime.pass(10 * PERIOD_MS);
    expect(service.counts.write).toBe(1);
    expect(service.log.lines).toEqual([
      'Other processes cannot see the host of this one: the user lacks +set. To do without, set holderInfo: false.',
    ]);
    expect((await service.refused()).code).toBe('LOCK_TAKEN');
  });

  it('that could not be written is written at the next renewal, without a warning', async () => {
    const service = new Service();
    const { processes } = service.store;
    const write = processes.write.bind(processes);
    processes.write = () => {
      service.counts.write += 1;
      processes.write = write;
      return Promise.reject(new Error('no route'));
    };
    await service.hold();
    await runtime.pass(PERIOD_MS);
    expect(await processes.read([service.manager.instanceId])).not.toEqual([undefined]);
    expect(service.log.lines).toEqual([]);
  });
});
