import { beforeEach, describe, expect, it } from 'vitest';
import { Places, type Place, type WakeUps } from '../../../lib/stores/sql/places.js';
import { nameTextOf } from '../../../lib/stores/sql/sql-terms.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const KEY = 'k';

describe('the places of a process', () => {
  let runtime: VirtualRuntime;
  let isLive: boolean;
  let left: string[];
  let rings: number;
  let places: Places;
  let heard: (number | 'free')[];
  const listener = {
    notified: () => void heard.push('free'),
    freeIn: (ms: number) => void heard.push(ms),
    failed: () => undefined,
  };
  /** A request was refused at this rank, and its caller waits. */
  const waits = (rank: number) => {
    const place = places.request(KEY);
    place.isQueued = true;
    places.seen(KEY, { freeInMs: 1, rank });
    places.requested(place);
    return { place, watch: places.watch({ finalKey: KEY, owner: 'own' }, listener) };
  };

  beforeEach(() => {
    runtime = new VirtualRuntime(0);
    [isLive, left, rings, heard] = [true, [], 0, []];
    const wakeUps: WakeUps = {
      serve: () => undefined,
      await: () => undefined,
      isLive: () => isLive,
      pauseMs: ({ rank }: Place) => 1_000 + rank!,
      ring: () => void (rings += 1),
    };
    places = new Places(runtime, wakeUps, (finalKey) => void left.push(finalKey));
  });

  it('a message that a key is free wakes its caller', () => {
    const { watch } = waits(0);
    places.free(KEY);
    expect([heard, left]).toEqual([['free'], []]);
    watch.close();
  });

  it('a message that comes before the reply wakes the caller that begins to wait', () => {
    const place = places.request(KEY);
    place.isQueued = true;
    places.free(KEY);
    places.requested(place);
    const watch = places.watch({ finalKey: KEY, owner: 'own' }, listener);
    expect([heard, left]).toEqual([['free'], []]);
    watch.close();
  });

  it('a message without a caller is passed on, whether the key is known or not', async () => {
    const place = places.request(KEY);
    places.free(KEY);
    places.requested(place);
    places.free('other');
    await settled();
    expect(left).toEqual(['other', KEY]);
  });

  it('a message that comes after the grant passes nothing on', async () => {
    const { place, watch } = waits(0);
    place.granted(false);
    watch.close();
    await settled();
    expect(left).toEqual([]);
  });

  it('a message is for each service of the store in turn', () => {
    const { watch } = waits(0);
    const others: string[] = [];
    const other = places.watch(
      { finalKey: KEY, owner: 'other' },
      {
        ...listener,
        notified: () => void others.push(`after ${heard.length}`),
      },
    );
    for (let i = 0; i < 3; i += 1) places.free(KEY);
    expect([others, heard]).toEqual([
      ['after 1', 'after 1', 'after 3'],
      ['free', 'free', 'free'],
    ]);
    watch.close();
    other.close();
  });

  it('the heir is to ask when the turn of the first one is over', () => {
    const { watch } = waits(1);
    places.next(KEY);
    expect(heard).toEqual([265]);
    watch.close();
  });

  it('finds a key whose name in the table is a digest', () => {
    const long = 'x'.repeat(600);
    places.watch({ finalKey: long, owner: 'own' }, listener);
    places.free(nameTextOf(long));
    expect([heard, left]).toEqual([['free'], []]);
  });

  it('leaves each wait queue when the store closes, and others hear of it', () => {
    waits(3);
    places.close();
    places.released(KEY, true);
    expect([left, rings]).toEqual([[KEY], 1]);
  });

  describe('are polled', () => {
    const pauseMs = (rank: number): number | undefined => waits(rank).watch.pauseMs;

    it('as the messages say, while these arrive', () => {
      expect([0, 1, 63].map(pauseMs)).toEqual([1_000, 1_001, 1_063]);
    });

    it('seldom outside the wait queue, and by the process that holds the key', () => {
      expect(pauseMs(64)).toBe(900);
      const { place, watch } = waits(0);
      place.granted(true);
      expect(watch.pauseMs).toBe(900);
    });

    it('by rank, while no message arrives', () => {
      isLive = false;
      expect([0, 1, 2, 40].map(pauseMs)).toEqual([5, 5, 10, 200]);
    });

    it('less often the longer each step takes', () => {
      isLive = false;
      const { watch } = waits(20);
      runtime.jump(200);
      places.seen(KEY, { freeInMs: Infinity, rank: 10 });
      expect(watch.pauseMs).toBe(100);
      runtime.jump(400);
      places.seen(KEY, { freeInMs: Infinity, rank: 10 });
      expect(watch.pauseMs).toBe(1_800);
    });

    it('less often the longer the first one waits', () => {
      isLive = false;
      const { watch } = waits(0);
      const seenAfter = (ms: number): number | undefined => {
        runtime.jump(ms);
        places.seen(KEY, { freeInMs: Infinity, rank: 0 });
        return watch.pauseMs;
      };
      expect([seenAfter(40), seenAfter(60), seenAfter(5_000)]).toEqual([10, 25, 100]);
    });
  });
});
