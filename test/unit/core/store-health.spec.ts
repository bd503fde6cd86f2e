import { describe, expect, it } from 'vitest';
import { LockEventHub } from '../../../lib/core/report/lock-events.js';
import { Outages } from '../../../lib/core/outage/outages.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { StoreHealth } from '../../../lib/core/context/store-health.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const open = () => {
  const runtime = new VirtualRuntime();
  const log: string[] = [];
  const logger = { log: (line: string) => void log.push(line), warn: (line: string) => void log.push(line) };
  const outages = new Outages(runtime, 'process');
  return {
    runtime,
    log,
    outages,
    health: new StoreHealth(runtime, new LockEventHub(logger), logger, outages),
  };
};
const failure = new StoreFailure('refused', 'not-executed');

describe('an outage of the store', () => {
  it('is told once when it begins, and once as soon as it is over', async () => {
    const { runtime, log, health } = open();
    for (let i = 0; i < 3; i++) health.failed(failure);
    await runtime.pass(500);
    health.works();
    health.works();
    expect(log).toEqual([
      expect.stringContaining('does not work'),
      'The lock store works again, after 500 ms.',
    ]);
  });

  it('names its cause once, also where the message has it already', () => {
    const { log, health } = open();
    const cause = new Error('MISCONF the disk is full');
    health.failed(new StoreFailure(`Redis refused the command: ${cause.message}`, 'not-executed', { cause }));
    expect(log.join().split(cause.message)).toHaveLength(2);
  });

  it('is not over while it fails for a key that callers wait for, though it works for others', () => {
    const { log, health, outages } = open();
    const key = { retry: () => undefined };
    outages.failed(key);
    health.failed(failure);
    expect(outages.storeFails).toBe(true);
    health.works();
    health.failed(failure);
    health.works();
    expect(log).toHaveLength(1);
    outages.over(key, true);
    health.works();
    expect(log).toHaveLength(2);
    expect(outages.storeFails).toBe(false);
  });

  it('soon after another one is told like that one: a server may be restarted twice', async () => {
    const { runtime, log, health } = open();
    for (let i = 0; i < 2; i++) {
      health.failed(failure);
      await runtime.pass(500);
      health.works();
    }
    expect(log).toHaveLength(4);
  });

  it('of a part of it only, which fails and works in turns, is one outage that is over when all is quiet', async () => {
    const { runtime, log, health } = open();
    for (let i = 0; i < 100; i++) {
      health.failed(failure);
      await runtime.pass(50);
      health.works();
    }
    expect(log).toHaveLength(5);
    await runtime.pass(10_000);
    health.works();
    expect(log).toHaveLength(6);
    await runtime.pass(60_000);
    health.failed(failure);
    await runtime.pass(5);
    health.works();
    expect(log).toHaveLength(8);
  });
});
