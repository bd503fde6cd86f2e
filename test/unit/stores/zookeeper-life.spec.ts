import { describe, expect, it } from 'vitest';
import { Life } from '../../../lib/stores/zookeeper/life.js';

const TIMEOUT_MS = 24_000;
/** For how long a session counts from the request of which the leader knows. */
const COUNTS_MS = 21_000;
/** Within which a server has told the leader. */
const TOLD_MS = 6_750;

/** For how long it counts from a connection on. */
const CONNECTED_MS = 16_000;

/** A session that was begun long ago, and taken up over another connection. */
const takenUp = (): Life => {
  const life = new Life({ id: 1n, password: Buffer.alloc(16), timeoutMs: TIMEOUT_MS }, -TIMEOUT_MS);
  life.connected(0, 10);
  return life;
};

describe('a session of ZooKeeper', () => {
  it('is valid from its beginning, of which the leader knows', () => {
    const life = new Life({ id: 1n, password: Buffer.alloc(16), timeoutMs: TIMEOUT_MS }, 100);
    life.connected(100, 110);
    expect(life.validUntil).toBe(100 + COUNTS_MS);
  });

  it('is valid from a new connection on, for less, whatever replies came since', () => {
    const life = takenUp();
    life.heard(5_000, 5_010);
    life.heard(10 + TOLD_MS - 1, 14_000);
    expect(life.validUntil).toBe(CONNECTED_MS);
  });

  it('is valid from a request, once a later one has a reply that the server sent on after it told the leader', () => {
    const life = takenUp();
    life.heard(5_000, 5_010);
    life.heard(10 + TOLD_MS, 12_000);
    expect(life.validUntil).toBe(COUNTS_MS);
    life.heard(5_010 + TOLD_MS, 14_000);
    expect(life.validUntil).toBe(5_000 + COUNTS_MS);
    life.heard(12_000 + TOLD_MS - 1, 19_010);
    expect(life.validUntil).toBe(5_000 + COUNTS_MS);
    life.heard(12_000 + TOLD_MS, 22_010);
    expect(life.validUntil).toBe(10 + TOLD_MS + COUNTS_MS);
  });

  it('forgets the replies of a server that is gone, which may have told nothing of them', () => {
    const life = takenUp();
    life.heard(5_000, 5_010);
    life.connected(6_000, 6_010);
    life.heard(6_009 + TOLD_MS, 20_010);
    expect(life.validUntil).toBe(6_000 + CONNECTED_MS);
    life.heard(20_010 + TOLD_MS, 30_000);
    expect(life.validUntil).toBe(6_009 + TOLD_MS + COUNTS_MS);
  });

  it('remembers few of many requests', () => {
    const life = takenUp();
    for (let sentAt = 0; sentAt < 100_000; sentAt++) life.heard(sentAt, sentAt + 5);
    expect(life.validUntil).toBeGreaterThan(100_000 - TOLD_MS - TIMEOUT_MS / 32 - 10 + COUNTS_MS);
    expect((life as unknown as { unsure: readonly unknown[] }).unsure.length).toBeLessThan(15);
  });
});
