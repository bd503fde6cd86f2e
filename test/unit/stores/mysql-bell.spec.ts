import { beforeEach, describe, expect, it } from 'vitest';
import { MysqlBell, type Heard } from '../../../lib/stores/mysql/mysql-bell.js';
import { Places, type Place } from '../../../lib/stores/sql/places.js';
import { MAX_QUEUED } from '../../../lib/stores/sql/sql-terms.js';
import { raw, type SqlSession, type Statement } from '../../../lib/stores/sql/sql.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const KEY = 'k';
/** A reply comes so much later than the server has it, in ms. */
const AWAY_MS = 60;

describe('a process that waits for a bell', () => {
  let runtime: VirtualRuntime;
  let places: Places;
  let asked: number;
  /** For how long the server waits for the bell, in ms. */
  let waitedMs: number;
  let rank: number;

  /** A database that always says that the key is taken. */
  const session = {
    isOver: false,
    send: <T>({ read }: Statement<T>): Promise<T> =>
      new Promise((resolve) => runtime.setTimer(() => resolve(read(undefined)), AWAY_MS + waitedMs)),
    destroy: () => undefined,
  } as SqlSession;

  const nothing = (): void => undefined;
  const waits = (meanwhile: (place: Place) => void = nothing) => {
    const place = places.request(KEY);
    place.isQueued = true;
    places.seen(KEY, { freeInMs: 1, rank });
    meanwhile(place);
    places.requested(place);
    return places.watch(
      { finalKey: KEY, owner: 'own' },
      { notified: nothing, freeIn: nothing, failed: nothing },
    );
  };

  beforeEach(() => {
    runtime = new VirtualRuntime(0);
    [asked, waitedMs, rank] = [0, 0, 0];
    const bell = new MysqlBell({
      runtime,
      connect: async () => session,
      ring: { sql: raw('ring'), read: () => undefined },
      wait: () => ({
        sql: raw('wait'),
        read: (): Heard => {
          asked += 1;
          return { freeInMs: 10_000, rank, hadOwner: waitedMs > 0 };
        },
      }),
    });
    places = new Places(runtime, bell, () => undefined);
  });

  it('asks ever more rarely for a bell without owner, however late the replies come', async () => {
    const watch = waits();
    const counts: number[] = [];
    for (let second = 0; second < 6; second += 1) {
      const before = asked;
      await runtime.pass(1_000);
      counts.push(asked - before);
    }
    expect(counts[0]).toBeGreaterThan(3);
    expect(counts[0]).toBeLessThan(7);
    expect(counts.slice(2)).toEqual([1, 1, 1, 1]);
    watch.close();
  });

  it('asks at once for the bell before another place', async () => {
    const watch = waits();
    await runtime.pass(2_000);
    const before = asked;
    places.of(KEY)!.granted(true);
    rank = 3;
    places.seen(KEY, { freeInMs: 10_000, rank });
    await runtime.pass(AWAY_MS);
    expect(asked).toBe(before + 1);
    watch.close();
  });

  it('waits again for a bell that its owner has', async () => {
    waitedMs = 400;
    const watch = waits();
    await runtime.pass(2_000);
    expect(asked).toBeGreaterThan(2);
    watch.close();
  });

  it('outside of a full wait queue waits for none', async () => {
    [rank, waitedMs] = [MAX_QUEUED, 400];
    const watch = waits();
    await runtime.pass(2_000);
    watch.close();
    expect(asked).toBe(0);
  });

  it('waits for one when another caller of the process has got the key meanwhile', async () => {
    waitedMs = 400;
    const watch = waits((place) => place.granted(false));
    await runtime.pass(2_000);
    watch.close();
    expect(asked).toBeGreaterThan(2);
  });
});
