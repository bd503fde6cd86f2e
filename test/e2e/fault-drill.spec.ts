import { describe, expect, it } from 'vitest';
import { rehearseFaults, type FaultReport } from '../../sample-app/src/demo/fault-drill.js';
import type { Leave, PartMessage } from '../../sample-app/src/demo/part-process.js';
import type { Part } from '../../sample-app/src/demo/parts.js';
import { until } from '../support/async.js';

const ITEMS = 10;
const LATE_ENOUGH = 8;
const TOKEN = 5;

/** An instance that only notes which signals and which leaves to write it gets. */
class FakePart implements Part {
  readonly url = '';
  isAlive = true;
  /** How often `isAlive` was read. */
  looks = 0;
  readonly signals: NodeJS.Signals[] = [];
  readonly mayWrite: number[] = [];
  private readonly listeners = new Set<(message: PartMessage) => void>();

  constructor(readonly name: string) {}

  get alive(): boolean {
    this.looks++;
    return this.isAlive;
  }

  kill(signal: NodeJS.Signals): void {
    this.signals.push(signal);
  }

  send({ token }: Leave): void {
    this.mayWrite.push(token);
  }

  onMessage(listener: (message: PartMessage) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  asksToWrite(left: number, token: number): void {
    this.says({ type: 'about-to-write', left, token });
  }

  wrote(token: number): void {
    this.says({ type: 'wrote', token });
  }

  acquires(token: number): void {
    this.says({ type: 'acquired', key: 'sku', owner: this.name, token, at: 0 });
  }

  async gets(signal: NodeJS.Signals): Promise<void> {
    await until(() => this.signals.at(-1) === signal, { what: `${this.name} gets ${signal}` });
  }

  async getsLeave(token: number): Promise<void> {
    await until(() => this.mayWrite.includes(token), { what: `${this.name} may write` });
  }

  private says(message: PartMessage): void {
    for (const listener of [...this.listeners]) listener(message);
  }
}

const drill = () => {
  const [first, second] = [new FakePart('first'), new FakePart('second')];
  const state = { owner: 'second:1' as string | undefined, soldShare: 0, fence: TOKEN, asked: 0 };
  const controller = new AbortController();
  const report: Promise<FaultReport> = rehearseFaults({
    instances: [first, second],
    items: ITEMS,
    owner: () => Promise.resolve(state.owner),
    fence: () => {
      state.asked++;
      return Promise.resolve(state.fence);
    },
    soldShare: () => state.soldShare,
    onEvent: () => undefined,
    signal: controller.signal,
  });
  return { first, second, state, report, controller };
};

/** A drill in which `first` stands still between its read and its write. */
const drillWithStopped = async () => {
  const all = drill();
  all.first.asksToWrite(LATE_ENOUGH, TOKEN);
  await all.first.gets('SIGSTOP');
  return all;
};

describe('an instance that asks the drill before it writes', () => {
  it('may write at once while little is sold', async () => {
    const { first, report, controller } = drill();
    first.asksToWrite(LATE_ENOUGH + 1, TOKEN);
    expect(first.mayWrite).toEqual([TOKEN]);
    expect(first.signals).toEqual([]);
    controller.abort();
    expect(await report).toEqual({ killed: 0, stopped: 0 });
  });

  it('may write at once while another stands still, and when the drill is over', async () => {
    const { first, second, report, controller } = await drillWithStopped();
    second.asksToWrite(LATE_ENOUGH, TOKEN + 1);
    expect(second.mayWrite).toEqual([TOKEN + 1]);
    controller.abort();
    await first.getsLeave(TOKEN);
    first.wrote(TOKEN);
    await report;
    second.asksToWrite(LATE_ENOUGH - 1, TOKEN + 2);
    expect(second.mayWrite).toEqual([TOKEN + 1, TOKEN + 2]);
  });

  it('may write when the drill is called off before the instance is stopped', async () => {
    const { first, report, controller } = drill();
    first.asksToWrite(LATE_ENOUGH, TOKEN);
    controller.abort();
    expect(await report).toEqual({ killed: 0, stopped: 0 });
    expect(first.mayWrite).toEqual([TOKEN]);
  });
});

describe('the instance that the drill has stopped before its write', () => {
  it('stands still until another has read, not only taken the lock, and then goes on to its write', async () => {
    const { first, state, report, controller } = await drillWithStopped();
    const before = state.asked;
    await until(() => state.asked > before + 1, { what: 'the fence was asked for and answered' });
    expect(first.signals).toEqual(['SIGSTOP']);
    expect(first.mayWrite).toEqual([]);

    state.fence = TOKEN + 1;
    await first.getsLeave(TOKEN);
    expect(first.signals).toEqual(['SIGSTOP', 'SIGCONT']);
    first.wrote(TOKEN);
    controller.abort();
    expect(await report).toMatchObject({ stopped: 1 });
  });

  it('is waited for until its write is over, also when the sale ends first', async () => {
    const { first, state, report, controller } = await drillWithStopped();
    state.fence = TOKEN + 1;
    await first.getsLeave(TOKEN);
    controller.abort();
    first.wrote(TOKEN + 1);
    const looks = first.looks;
    await until(() => first.looks > looks + 1, { what: 'the drill looks again whether it is over' });
    first.wrote(TOKEN);
    expect(await report).toEqual({ killed: 0, stopped: 1 });
  });

  it('is not waited for when it has ended', async () => {
    const { first, report, controller } = await drillWithStopped();
    controller.abort();
    await first.getsLeave(TOKEN);
    first.isAlive = false;
    expect(await report).toEqual({ killed: 0, stopped: 1 });
  });

  it('goes on when the drill is called off', async () => {
    const { first, report, controller } = await drillWithStopped();
    controller.abort();
    await first.gets('SIGCONT');
    await first.getsLeave(TOKEN);
    first.wrote(TOKEN);
    expect(await report).toEqual({ killed: 0, stopped: 1 });
  });
});

describe('the instance that the drill kills', () => {
  it('holds the lock, and is killed after the stale write when half is sold', async () => {
    const { first, second, state, report } = await drillWithStopped();
    state.fence = TOKEN + 1;
    await first.getsLeave(TOKEN);
    first.wrote(TOKEN);
    state.soldShare = 0.5;
    await until(
      () => {
        if (second.signals.length === 0) second.acquires(TOKEN + 1);
        return second.signals.length > 0;
      },
      { what: 'somebody listens to second' },
    );
    expect(await report).toEqual({ killed: 1, stopped: 1 });
    expect(second.signals.slice(0, 2)).toEqual(['SIGSTOP', 'SIGKILL']);
  });
});
