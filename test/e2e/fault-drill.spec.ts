import { describe, expect, it } from 'vitest';
import { rehearseFaults, type FaultReport } from '../../sample-app/src/demo/fault-drill.js';
import type { PartMessage } from '../../sample-app/src/demo/part-process.js';
import type { Part } from '../../sample-app/src/demo/parts.js';
import { until } from '../support/async.js';

const FENCE = 5;

/** An instance that only notes which signals it gets. */
class FakePart implements Part {
  readonly url = '';
  readonly alive = true;
  readonly signals: NodeJS.Signals[] = [];
  private readonly listeners = new Set<(message: PartMessage) => void>();

  constructor(readonly name: string) {}

  kill(signal: NodeJS.Signals): void {
    this.signals.push(signal);
  }

  onMessage(listener: (message: PartMessage) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  /** Says that it has the lock, once somebody listens. */
  async acquires(token: number): Promise<void> {
    await until(() => this.listeners.size > 0, { what: `somebody listens to ${this.name}` });
    this.says(token);
  }

  says(token: number): void {
    for (const listener of [...this.listeners]) {
      listener({ type: 'acquired', key: 'sku', owner: this.name, token });
    }
  }

  async gets(signal: NodeJS.Signals): Promise<void> {
    await until(() => this.signals.at(-1) === signal, { what: `${this.name} gets ${signal}` });
  }
}

/** A drill in which `first` was killed, and `second` stands still with the lock. */
const drill = async () => {
  const [first, second] = [new FakePart('first'), new FakePart('second')];
  const state = { owner: 'first:1' as string | undefined, soldShare: 0.3, refused: 0 };
  const events: string[] = [];
  const controller = new AbortController();
  const report: Promise<FaultReport> = rehearseFaults({
    instances: [first, second],
    owner: () => Promise.resolve(state.owner),
    fence: () => Promise.resolve(FENCE),
    staleWritesRefused: () => Promise.resolve(state.refused),
    soldShare: () => state.soldShare,
    onEvent: (text) => void events.push(text),
    signal: controller.signal,
  });
  await first.acquires(1);
  await first.gets('SIGKILL');
  state.owner = 'second:1';
  state.soldShare = 0.6;
  await second.acquires(FENCE - 1);
  // Its turn has gone on, and what it said of that arrives once it stands still.
  second.says(FENCE + 1);
  await until(() => events.includes('second stopped while it held the lock'), { what: 'second is stopped' });
  return { second, state, report, controller };
};

describe('the instance that the drill has stopped with the lock', () => {
  it('goes on when another has the lock', async () => {
    const { second, state, report } = await drill();
    state.owner = 'third:1';
    await second.gets('SIGCONT');
    state.refused = 1;
    expect(await report).toEqual({ killed: 1, stopped: 1 });
  });

  it('goes on when the lock is free and nobody wants it, because all who do wait for this instance', async () => {
    const { second, state, report } = await drill();
    state.owner = undefined;
    await second.gets('SIGCONT');
    state.refused = 1;
    expect(await report).toEqual({ killed: 1, stopped: 1 });
  });

  it('goes on when the drill is called off', async () => {
    const { second, report, controller } = await drill();
    controller.abort();
    expect(await report).toEqual({ killed: 1, stopped: 0 });
    expect(second.signals.at(-1)).toBe('SIGCONT');
  });
});
