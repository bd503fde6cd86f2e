import { beforeEach, describe, expect, it } from 'vitest';
import { claimOn } from '../../support/core/queue-on.js';
import { Undo } from '../../../lib/core/lease/undo.js';
import { notExecuted, notHeld, ScriptedStore, unknown } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const claim = claimOn('k', 'o');

let runtime: VirtualRuntime;
let store: ScriptedStore;
let undo: Undo;

const release = () => store.next('release');

beforeEach(() => {
  runtime = new VirtualRuntime();
  store = new ScriptedStore();
  undo = new Undo((claim, how) => store.release(claim, how), runtime);
});

describe('undoing a claim', () => {
  it('asks at once, and is over with the first answer', async () => {
    undo.begin({ claim, until: runtime.now() + 30_000 });
    expect(undo.size).toBe(1);
    await release().reply(notHeld);
    expect([undo.size, store.sent.length, runtime.due]).toEqual([0, 1, []]);
  });

  it('passes on the doubt with every try: only the store can tell when "not there" is final', async () => {
    const uncertain = unknown('no answer to the acquire');
    undo.begin({ claim, uncertain, until: runtime.now() + 30_000 });
    for (let i = 0; i < 4; i += 1) {
      expect(release().uncertain).toBe(uncertain);
      expect(release().claim).toEqual(claim);
      await release().fail(unknown());
      await runtime.pass(1_000);
    }
    await release().reply(notHeld);
    expect(undo.size).toBe(0);
  });

  it('tries again after pauses that grow to a second', async () => {
    undo.begin({ claim, until: Infinity });
    const pauses: number[] = [];
    for (let i = 0; i < 8; i += 1) {
      const failedAt = runtime.now();
      await release().fail(notExecuted());
      while (store.unanswered.length === 0) await runtime.pass(1);
      pauses.push(runtime.now() - failedAt);
    }
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
  });

  it('gives up when the hold has ended by itself, and no earlier', async () => {
    const until = runtime.now() + 30_000;
    undo.begin({ claim, until });
    let lastAt = 0;
    while (undo.size > 0) {
      if (store.unanswered.length > 0) {
        lastAt = runtime.now();
        await release().fail(unknown());
      }
      await runtime.pass(10);
    }
    expect(until - lastAt).toBeLessThanOrEqual(1_000);
    expect(runtime.now()).toBeLessThanOrEqual(until + 10);
    await runtime.pass(60_000);
    expect(store.unanswered).toEqual([]);
  });

  it('a failure that is none of the store is not repeated', async () => {
    undo.begin({ claim, until: Infinity });
    await release().fail(new TypeError('a bug'));
    await runtime.pass(60_000);
    expect([undo.size, store.sent.length]).toEqual([0, 1]);
  });

  it('several run beside each other, and idle waits for the last', async () => {
    for (const key of ['a', 'b', 'c']) undo.begin({ claim: { ...claim, finalKey: key }, until: Infinity });
    let idle = false;
    void undo.idle().then(() => (idle = true));
    for (let left = 3; left > 0; left -= 1) {
      await settled();
      expect(idle).toBe(false);
      await release().reply(notHeld);
    }
    await settled();
    expect(idle).toBe(true);
  });

  it('after stop nothing is asked any more', async () => {
    undo.begin({ claim, until: Infinity });
    await release().fail(unknown());
    undo.stop();
    expect(runtime.due).toEqual([]);
    await runtime.pass(60_000);
    expect([undo.size, store.sent.length]).toEqual([0, 1]);
    undo.begin({ claim, until: Infinity });
    await settled();
    expect([undo.size, store.sent.length]).toEqual([0, 1]);
  });
});
