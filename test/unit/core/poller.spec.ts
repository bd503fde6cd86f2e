import { beforeEach, describe, expect, it } from 'vitest';
import { Poller } from '../../../lib/core/wait/poller.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { KindStore } from '../../../lib/core/seam/lock-store.js';
import type { WatchListener } from '../../../lib/core/seam/watch.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const POLL = { minMs: 10, maxMs: 100, liveMaxMs: 1_000 };
const claim = (finalKey: string): Claim => ({ finalKey }) as Claim;

let runtime: VirtualRuntime;
/** When each key is free, by its name; `Infinity` for a hold without an end. */
let heldUntil: Record<string, number>;
/** Each request: its time, and the keys that it asked about. */
let asked: { readonly at: number; readonly keys: readonly string[] }[];
/** What the store does before it answers. */
let before: () => void;
let ownWatch: { listener: WatchListener | undefined; live: boolean; pauseMs?: number; closed: boolean };

const newPoller = (withWatch = false): Poller => {
  const kind = {
    peekMany: (claims: readonly Claim[]) => {
      asked.push({ at: runtime.now(), keys: claims.map(({ finalKey }) => finalKey) });
      before();
      return Promise.resolve(
        claims.map(({ finalKey }) => Math.max(0, (heldUntil[finalKey] ?? 0) - runtime.now())),
      );
    },
    ...(withWatch && {
      watch: (_claim: Claim, listener: WatchListener) => {
        ownWatch.listener = listener;
        return {
          get live() {
            return ownWatch.live;
          },
          get pauseMs() {
            return ownWatch.pauseMs;
          },
          close: () => (ownWatch.closed = true),
        };
      },
    }),
  };
  return new Poller(kind as unknown as KindStore, POLL, runtime);
};

/** Watches a key; returns the times of the wake-ups. */
const watching = (poller: Poller, key: string) => {
  const wakeUps: number[] = [];
  const listener = { notified: () => void wakeUps.push(runtime.now()), failed: () => undefined };
  return { wakeUps, watch: poller.watch(claim(key), listener) };
};

const pauses = (): readonly number[] => asked.slice(1).map(({ at }, i) => Math.round(at - asked[i]!.at));

beforeEach(() => {
  runtime = new VirtualRuntime(0);
  heldUntil = { k: Infinity, l: Infinity };
  asked = [];
  before = () => undefined;
  ownWatch = { listener: undefined, live: true, closed: false };
});

describe('the poller', () => {
  it('asks less often the longer a key is held, up to the longest pause', async () => {
    watching(newPoller(), 'k');
    await runtime.pass(1_000);
    expect(asked[0]!.at).toBe(10);
    expect(pauses().slice(0, 5)).toEqual([13, 18, 24, 32, 42]);
    expect(Math.max(...pauses())).toBe(100);
  });

  it('varies each pause by a quarter', async () => {
    runtime.random = () => 0;
    watching(newPoller(), 'k');
    await runtime.pass(8);
    runtime.random = () => 1;
    await runtime.pass(100);
    expect(asked.slice(0, 2).map(({ at }) => Math.round(at))).toEqual([8, 18]);
  });

  it('wakes a caller when its key may be free, and begins again with the shortest pause', async () => {
    const { wakeUps } = watching(newPoller(), 'k');
    await runtime.pass(500);
    heldUntil['k'] = 0;
    await runtime.pass(100);
    const [wokenAt] = wakeUps;
    expect(wokenAt).toBe(asked.find(({ at }) => at > 500)!.at);
    expect(asked.find(({ at }) => at > wokenAt!)!.at - wokenAt!).toBe(10);
  });

  it('asks at the end of the blocking hold, before its pause is over', async () => {
    const poller = newPoller();
    heldUntil['k'] = 1_005;
    const { wakeUps } = watching(poller, 'k');
    await runtime.pass(2_000);
    expect(wakeUps[0]).toBe(1_005);
  });

  it('asks about all keys that are due, in one request', async () => {
    const poller = newPoller();
    const first = watching(poller, 'k');
    await runtime.pass(4);
    const second = watching(poller, 'l');
    heldUntil = { k: Infinity, l: 0 };
    await runtime.pass(7);
    expect(asked).toEqual([{ at: 10, keys: ['k', 'l'] }]);
    expect([first.wakeUps, second.wakeUps]).toEqual([[], [10]]);
  });

  it('asks about many keys together, however different their pauses have become', async () => {
    let random = 0;
    runtime.random = () => (random = (random + 0.37) % 1);
    const poller = newPoller();
    for (let i = 0; i < 50; i++) {
      heldUntil[`k${i}`] = Infinity;
      watching(poller, `k${i}`);
      await runtime.pass(3);
    }
    await runtime.pass(1_000);
    asked = [];
    await runtime.pass(1_000);
    expect(asked.length).toBeLessThan(25);
  });

  it('asks nothing when the only key that was due has gone', async () => {
    const poller = newPoller();
    const { watch } = watching(poller, 'k');
    await runtime.pass(6);
    watching(poller, 'l');
    watch.close();
    await runtime.pass(200);
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.map(({ keys }) => keys)).not.toContainEqual([]);
  });

  it('leaves no timer behind the last caller', async () => {
    const poller = newPoller();
    const watches = [watching(poller, 'k').watch, watching(poller, 'l').watch];
    await runtime.pass(50);
    for (const watch of watches) watch.close();
    expect(runtime.due).toEqual([]);
    const count = asked.length;
    await runtime.pass(1_000);
    expect(asked).toHaveLength(count);
  });

  it('leaves no timer when the last caller goes during a request', async () => {
    const poller = newPoller();
    const { watch, wakeUps } = watching(poller, 'k');
    heldUntil['k'] = 0;
    before = () => watch.close();
    await runtime.pass(1_000);
    expect([asked.length, wakeUps, runtime.due]).toEqual([1, [], []]);
  });

  it('wakes a caller each second while the store fails, and is not live until it replies', async () => {
    const { watch, wakeUps } = watching(newPoller(), 'k');
    before = () => {
      throw new StoreFailure('unreachable', 'not-executed');
    };
    await runtime.pass(3_000);
    expect([watch.live, wakeUps]).toEqual([false, [10, 1_010, 2_010]]);
    before = () => undefined;
    await runtime.pass(1_000);
    expect([watch.live, wakeUps]).toEqual([true, [10, 1_010, 2_010]]);
  });

  it('takes a reply that is no number for a failure', async () => {
    const { watch, wakeUps } = watching(newPoller(), 'k');
    heldUntil['k'] = NaN;
    await runtime.pass(200);
    expect([watch.live, wakeUps]).toEqual([false, [10]]);
  });

  describe('of a store with its own subscription', () => {
    it('wakes a caller as soon as that does', async () => {
      const { wakeUps } = watching(newPoller(true), 'k');
      await runtime.pass(500);
      ownWatch.listener!.notified();
      expect(wakeUps).toEqual([500]);
    });

    it('asks seldom while that is live, and as often as without it when it is not', async () => {
      watching(newPoller(true), 'k');
      await runtime.pass(10_000);
      expect(Math.max(...pauses())).toBe(1_000);
      ownWatch.live = false;
      await runtime.pass(2_000);
      asked = [];
      await runtime.pass(1_000);
      expect(Math.max(...pauses())).toBe(100);
    });

    it('asks as that says, and each second while the store fails', async () => {
      ownWatch.pauseMs = 3_000;
      watching(newPoller(true), 'k');
      await runtime.pass(10_000);
      expect(asked.map(({ at }) => at)).toEqual([3_000, 6_000, 9_000]);
      ownWatch.pauseMs = 1;
      before = () => {
        throw new StoreFailure('unreachable', 'not-executed');
      };
      await runtime.pass(4_000);
      expect(asked.slice(3).map(({ at }) => at)).toEqual([12_000, 13_000, 14_000]);
    });

    it('asks sooner when that says so', async () => {
      ownWatch.pauseMs = Infinity;
      watching(newPoller(true), 'k');
      await runtime.pass(10_000);
      ownWatch.listener!.freeIn!(70);
      await runtime.pass(10_000);
      expect(asked.map(({ at }) => at)).toEqual([10_070]);
    });

    it('goes on when that has failed', async () => {
      const { wakeUps } = watching(newPoller(true), 'k');
      ownWatch.listener!.failed(new StoreFailure('no right', 'not-executed'));
      heldUntil['k'] = 0;
      await runtime.pass(10);
      expect(wakeUps).toEqual([10]);
    });

    it('ends that with the caller', () => {
      watching(newPoller(true), 'k').watch.close();
      expect(ownWatch.closed).toBe(true);
    });
  });
});
