import { beforeEach, describe, expect, it } from 'vitest';
import { Board } from '../../sample-app/src/demo/live/board.js';
import { clock } from '../../sample-app/src/demo/live/ids.js';
import { FakePart } from './fake-part.js';

const LEASE_MS = 2_000;

describe('the board of the page', () => {
  let board: Board;
  let first: FakePart;
  let second: FakePart;

  beforeEach(() => {
    board = new Board(LEASE_MS, 'Redis');
    [first, second] = [new FakePart(), new FakePart()];
    board.starting('locked', ['instance 1', 'instance 2']);
    board.up(0, first);
    board.up(1, second);
    board.open({ strategy: 'locked', items: 5, clicks: 10 });
  });

  const said = (): string => board.snapshot().sentences[0]!.text;
  const states = (): string[] => board.snapshot().lanes.map(({ state }) => state);

  it('shows the next holder and the end of its lease, and that the block of the last one has ended', () => {
    first.sells(1)();
    second.sells(2);
    const { lock, lanes, now } = board.snapshot();
    expect(lock).toMatchObject({ lane: 1, buyer: 'buyer-2', token: 2 });
    expect(lock!.endsAt).toBeGreaterThan(now);
    expect(lock!.endsAt).toBeLessThanOrEqual(now + LEASE_MS);
    expect(lanes[0]!.bars[0]!.to).toBeLessThanOrEqual(lanes[1]!.bars[0]!.from);
    expect(states()).toEqual(['idle', 'holds']);
  });

  it('shows a block, its holder and its lease from the grant to the end of the sale, and a free lock after it', () => {
    second.says({ type: 'acquired', key: 'sku:1', owner: 'b:', token: 1, at: clock() });
    expect(board.snapshot().lock).toMatchObject({ lane: 1, buyer: '' });
    expect(states()).toEqual(['idle', 'holds']);
    second.sells(1)();
    expect(board.snapshot().lock).toBeUndefined();
    expect(states()).toEqual(['idle', 'idle']);
  });

  it('shows what the store says about the end of the lease', () => {
    first.says({ type: 'acquired', key: 'sku:1', owner: 'a:', token: 1, at: clock() });
    first.sells(1);
    const endsAt = clock() + 700;
    board.inspected('a:7', endsAt);
    expect(board.key).toBe('sku:1');
    expect(board.snapshot().lock?.endsAt).toBe(endsAt);
  });

  it('tells a stopped instance that goes on in time from one whose lease is over', () => {
    first.sells(1);
    board.stopped(0, 1);
    expect(said()).toContain('was stopped while it held the lock');
    board.wentOn(0);
    expect(said()).toContain('goes on in time');

    board.stopped(0, 1);
    second.sells(2);
    expect(said()).toContain('The lease of instance 1 is over: instance 2 has the lock');
    board.wentOn(0);
    expect(said()).toContain('believes that it still has the lock');
  });

  it('is not misled by what a stopped instance reports late', () => {
    second.sells(2);
    first.sells(1);
    expect(board.snapshot().lock).toMatchObject({ lane: 1, token: 2 });
    expect(states()).toEqual(['idle', 'holds']);
  });

  it('shows a killed holder as such until the store says that its lock is free', () => {
    first.sells(1, clock() - LEASE_MS);
    board.killed(0);
    expect(states()[0]).toBe('killed');
    expect(board.isHolderDead).toBe(true);
    expect(board.snapshot().sentences[0]!.until).toBeDefined();
    board.inspected(undefined, 0);
    expect(states()[0]).toBe('starting');
    expect(board.isHolderDead).toBe(false);
    expect(board.snapshot().lanes[0]!.spans).toMatchObject([{ kind: 'killed', to: expect.any(Number) }]);
    second.sells(2);
    expect(said()).toContain('The lease of instance 1 is over, and instance 2 has the lock');
  });

  it.each(['before it has said to whom it sells', 'after its sale, and before its release'])(
    'shows the hold of an instance that is killed %s',
    (when) => {
      first.sells(1)();
      second.says({ type: 'acquired', key: 'sku:1', owner: 'b:', token: 2, at: clock() });
      if (when.startsWith('after')) second.sells(2)();
      board.killed(1);
      const { lanes, lock } = board.snapshot();
      expect(lanes[1]).toMatchObject({ state: 'killed', bars: [{ token: 2 }] });
      expect(lanes[1]!.bars[0]!.to).toBeUndefined();
      expect(lock).toMatchObject({ lane: 1, token: 2 });
    },
  );

  it('counts the grants of a sale, in the order of their tokens', () => {
    first.sells(1_007);
    board.stopped(0, 1_007);
    expect(board.snapshot().sentences[0]).toMatchObject({
      text: expect.stringContaining('(token #1)'),
      tokens: '#1 is token 1007',
    });
    second.sells(1_020)();
    second.sells(1_021);
    expect(board.snapshot().lock).toMatchObject({ token: 1_021, grant: 3 });
    first.says({ type: 'refused', token: 1_007, at: clock() });
    expect(said()).toContain('token #1 is older than #3');
    board.open({ strategy: 'locked', items: 5, clicks: 10 });
    first.sells(5);
    expect(board.snapshot().lock).toMatchObject({ token: 5, grant: 1 });
  });

  it('tells blocks that sold from those that did not, and whose sale a stale write would have undone', () => {
    first.sells(1)();
    const late = first.sells(2, clock() + 100);
    board.stopped(0, 2);
    const end = second.sells(3);
    second.says({ type: 'sold', token: 3 });
    late();
    end();
    first.says({ type: 'refused', token: 2, at: clock() });
    const { lanes } = board.snapshot();
    expect(lanes.map(({ bars }) => bars.map(({ sold }) => sold))).toEqual([[0, 0], [1]]);
    expect(said()).toContain('it would have undone the sale to buyer 3.');
  });

  it('tells how many clicks of a killed instance go to the others', () => {
    first.says({ type: 'clicks', waiting: 33, next: [] });
    first.sells(1);
    board.killed(0);
    expect(said()).toContain('33 clicks that waited in it go to the others');
  });

  it('joins short holds that follow each other, and keeps no more bars than it shows', () => {
    const now = clock();
    for (let i = 0; i < 10; i += 1) first.sells(i, now + i)(now + i + 1);
    expect(board.snapshot().lanes[0]!.bars).toMatchObject([{ buyers: 10 }]);
    for (let i = 0; i < 1_000; i += 1) second.sells(100 + i, now + 100 * i)(now + 100 * i + 50);
    expect(board.snapshot().lanes[1]!.bars.length).toBeLessThanOrEqual(250);
    expect(JSON.stringify(board.snapshot()).length).toBeLessThan(60_000);
  });

  it('forgets the messages of the instances of an earlier sale', () => {
    board.starting('none', ['instance 1']);
    first.sells(1);
    expect(board.snapshot().lock).toBeUndefined();
    expect(board.snapshot().lanes[0]!.bars).toEqual([]);
  });
});
