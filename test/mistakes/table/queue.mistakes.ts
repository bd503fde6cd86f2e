import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { RedisStage } from '../../faults/on-redis/redis-stage.js';
import { until } from '../../support/async.js';
import type { Mistake } from '../mistake.js';

/** One has the key, and these wait for it, in this order. */
const queueUp = async (stage: RedisStage, ...processes: readonly string[]): Promise<string[]> => {
  const owners = ['a', ...processes].map((process) => stage.owner(process));
  for (const owner of owners) await stage.acquire(owner);
  return owners;
};

/** Keeps the event loop of this process busy for so long. */
const block = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

/** Mistakes in the line that a store keeps, in granting from it, and in believing what is told of that. */
export const QUEUE_MISTAKES: readonly Mistake[] = [
  {
    name: 'keeping a place inserts',
    edits: [
      {
        in: 'QUEUE_KEEP',
        find: "whole(redis.call('pttl', hold)) end return 'gone'",
        replace:
          "whole(redis.call('pttl', hold)) end ticket = redis.call('hincrby', queue, 'last', 1) redis.call('hset', queue, ticket, entry_text(now + span, span, '10000', '1', not_subscribed, me), '@' .. me, ticket)",
      },
    ],
    onRedis: {
      async play(stage) {
        const [, waiter] = await queueUp(stage, 'b');
        await stage.release(waiter!);
        await stage.keep(waiter!);
        assert.deepEqual(await stage.waiting(), []);
      },
    },
  },
  {
    name: 'an owner used twice',
    edits: [
      {
        in: 'Contention.beAnotherOwner',
        find: 'this.claim = claimFor(this.core, this.wanted, this.wait);',
        replace: 'this.claim = { ...claimFor(this.core, this.wanted, this.wait), owner: this.claim.owner };',
      },
    ],
    onRedis: {
      async play(stage) {
        await queueUp(stage);
        const { manager, call } = stage.process();
        const calledOff = new AbortController();
        const waiting = manager.acquire([stage.key], call({ waitMs: 20_000, signal: calledOff.signal }));
        const [first] = await stage.waitingAre(1);
        await stage.admin.del(stage.queueKey);
        const [second] = await stage.waitingAre(1);
        calledOff.abort();
        await assert.rejects(waiting, { code: 'LOCK_ABORTED' });
        assert.notEqual(second, first);
      },
    },
  },
  {
    name: 'a grant counted from its arrival',
    edits: [
      {
        in: 'Contention.takeGrant',
        find: 'this.accept(outcome, outcome.since ?? entry.queuedAt,',
        replace: 'this.accept(outcome, core.runtime.now(),',
      },
      {
        in: 'StoreQueueEntry.isCertain',
        find: 'since + validForMs - now >= validForMs / 2',
        replace: 'true',
      },
    ],
    simulation: { rules: ['foundation', 'exclusion', 'entry'] },
  },
  {
    name: 'a message of another server run believed',
    edits: [
      {
        in: 'RedisQueue.granted',
        find: 'if (epoch === undefined || entry.epoch !== epoch) return this.missedNotification();',
        replace: '',
      },
    ],
    onRedis: {
      async play(stage) {
        await queueUp(stage);
        const { store } = stage.process();
        const owner = stage.owner('process');
        const claim = stage.claim(owner);
        const reply = await store.kinds.exclusive.acquire(claim);
        assert.equal(reply.status, 'queued');
        const outcomes: (QueueEntryOutcome | 'uncertain')[] = [];
        if (reply.status === 'queued') {
          const missedNotification = (): void => void outcomes.push('uncertain');
          reply.entry.listen({ notified: (outcome) => void outcomes.push(outcome), missedNotification });
        }
        const channel = `nest_redis_lock:grant:${owner.slice(0, owner.lastIndexOf(':'))}`;
        await until(async () => (await stage.admin.pubsub('NUMSUB', channel))[1] === 1);
        // The ear is open once a place is kept that is not deaf.
        await until(async () => {
          await store.kinds.exclusive.refreshEntries!([claim]);
          return String(await stage.admin.hget(stage.queueKey, '1')).endsWith(` 0 ${owner}`);
        });
        outcomes.length = 0;
        await stage.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await until(() => store.ping().then(() => true));
        await stage.admin.publish(channel, `grant 1 ${owner} 1 1 10000 0\n${stage.key}`);
        await until(() => outcomes.length > 0);
        assert.deepEqual(outcomes, ['uncertain']);
      },
    },
  },
  {
    name: 'a message published before what it tells is written',
    edits: [
      {
        in: 'WAIT_QUEUE',
        find: "redis.call('hset', hold, one.owner, 1)",
        replace:
          "redis.call('publish', '${GRANT_CHANNELS}' .. process_of(one.owner), table.concat({ 'grant', '1', one.owner, whole(token), whole(one.tokens), one.lease, whole(found.count - 1) }, ' ') .. '\\\\n' .. hold) redis.call('hset', hold, one.owner, 1)",
      },
      {
        in: 'WAIT_QUEUE',
        find: "local receivers = redis.pcall('publish', ${GRANT_CHANNEL}, message)",
        replace: 'local receivers = 1',
      },
    ],
    onRedis: {
      async play(stage) {
        const [holder] = await queueUp(stage, 'b');
        const user = await stage.userWithout('pexpire');
        await stage.release(holder!, user);
        await stage.allReceived();
        const holds = await stage.holder();
        assert.equal(
          stage.notifications.some((message) => message.startsWith('grant ')),
          holds !== undefined,
        );
      },
    },
  },
  {
    name: 'an acquire that was not answered sent again by the same owner',
    edits: [
      {
        in: 'getsAnotherTry',
        find: "failure.outcome !== 'unknown' && failure.transient",
        replace: "(failure.outcome === 'unknown' || failure.transient)",
      },
    ],
    simulation: { rules: ['foundation', 'exclusion'] },
  },
  {
    name: 'a deaf place removed',
    edits: [
      {
        in: 'WAIT_QUEUE',
        find: "redis.call('hset', queue, whole(one.ticket), one.text, '@' .. one.owner, whole(one.ticket))",
        replace: '',
      },
    ],
    onRedis: {
      async play(stage) {
        const [holder, away, waiter] = await queueUp(stage, 'away', 'b');
        await stage.release(holder!);
        assert.equal(await stage.holder(), waiter);
        assert.deepEqual(await stage.waiting(), [away]);
      },
    },
  },
  {
    name: 'a dead place granted again and again',
    edits: [
      { in: 'WAIT_QUEUE', find: 'if left <= 0 then', replace: 'if false then' },
      {
        in: 'WAIT_QUEUE',
        find: "sure(redis.pcall('hdel', queue, whole(one.ticket), '@' .. one.owner))",
        replace: '',
      },
    ],
    onRedis: {
      async play(stage) {
        const [holder, dead, waiter] = ['a', 'away', 'b'].map((process) => stage.owner(process));
        await stage.acquire(holder!);
        // It is alive until the waiter stands behind it, also on a machine that has much else to do.
        await stage.acquire(dead!, { notSubscribed: true, aliveMs: 1_000 });
        await stage.acquire(waiter!);
        await stage.release(holder!);
        // What it was given, if anything, is over.
        await stage.admin.del(stage.key);
        await sleep(1_005);
        await stage.keep(waiter!);
        assert.equal(await stage.holder(), waiter);
      },
    },
  },
  {
    name: 'a later place granted first',
    edits: [
      {
        in: 'WAIT_QUEUE',
        find: 'local one = entry_at(found, i)',
        replace: 'entry_at(found, 64) local one = found.entries[#found.entries + 1 - i]',
      },
    ],
    onRedis: {
      async play(stage) {
        const owners = await queueUp(stage, 'b', 'c', 'd');
        for (const [i, owner] of owners.slice(0, -1).entries()) {
          await stage.release(owner);
          assert.equal(await stage.holder(), owners[i + 1]);
        }
      },
    },
  },
  {
    name: 'a lost message never repaired',
    edits: [
      {
        in: 'StoreQueueEntry.replied',
        find: "if (reply.status === 'held') return this.notify(UNKNOWN_GRANT);",
        replace: "if (reply.status === 'held') return;",
      },
    ],
    simulation: { rules: ['promptness', 'leftovers'] },
    onRedis: {
      async play(stage) {
        const [holder] = await queueUp(stage);
        const { manager, call } = stage.process();
        const waiting = manager.acquire([stage.key], call({ waitMs: 3_000 }));
        const [waiter] = await stage.waitingAre(1);
        // The grant is done, and what was said of it has got lost.
        await stage.admin
          .multi()
          .del(stage.key, stage.queueKey)
          .hset(stage.key, waiter!, 1)
          .pexpire(stage.key, 10_000)
          .exec();
        assert.notEqual(holder, waiter);
        const lease = await waiting.catch(() => undefined);
        assert.ok(lease, 'the caller has what its place was given');
        await lease.release();
      },
    },
  },
  {
    name: 'a line without a time to live',
    edits: [
      {
        in: 'QUEUE_ACQUIRE',
        find: "local armed = redis.pcall('pexpire', queue, alive)",
        replace: 'local armed = 1',
      },
    ],
    onRedis: {
      async play(stage) {
        await queueUp(stage, 'b', 'c');
        assert.ok((await stage.admin.pttl(stage.queueKey)) > 0);
      },
    },
  },
  {
    name: 'a place without callers',
    edits: [{ in: 'LocalQueue.leave', find: 'if (entry) this.host.leaveQueue(entry);', replace: '' }],
    simulation: { rules: ['leftovers'] },
  },
  {
    name: 'a first lease that a blocked loop outlives',
    edits: [
      {
        in: 'EntryKeeper.termsFor',
        find: 'Math.floor(watchdogMs / 3)',
        replace: 'Math.floor(watchdogMs / 10)',
      },
    ],
    onRedis: {
      async play(stage) {
        const one = stage.process({ watchdogMs: 30_000 });
        const held = await one.manager.acquire([stage.key], one.call());
        const other = stage.process({ watchdogMs: 30_000 });
        const waiting = other.manager.acquire([stage.key], other.call());
        const [waiter] = await stage.waitingAre(1);
        await stage.queuedAndSubscribed(waiter!);
        await held.release();
        const lease = await waiting;
        // Work that never lets go of the loop, for less than a third of the lease.
        block(3_100);
        await sleep(0);
        assert.equal(lease.signal.aborted, false);
        assert.equal(await stage.holder(), waiter);
        await lease.release();
      },
    },
  },
  {
    name: 'a grant for another lease than the caller wants taken without a question',
    edits: [
      {
        in: 'StoreQueueEntry.isCertain',
        find: 'if (watchdogMs === undefined || watchdogMs !== this.watchdogMs) return false;',
        replace: '',
      },
    ],
    simulation: { rules: ['terms'] },
  },
  {
    name: 'the end of a hold slept through that comes sooner than was told at first',
    edits: [
      {
        in: 'StoreQueueEntry.replied',
        find: 'if (this.lookAgainAt < before) this.listener?.looksSooner?.();',
        replace: 'void before;',
      },
    ],
    onRedis: {
      async play(stage) {
        await queueUp(stage);
        const { manager, call } = stage.process();
        const waiting = manager.acquire([stage.key], call({ waitMs: 10_000 }));
        await stage.waitingAre(1);
        // It asks once more when it hears messages.
        await sleep(300);
        // Told when the place is kept, after a second; over a good while before it is kept again.
        await stage.admin.pexpire(stage.key, 1_000);
        const startedAt = performance.now();
        const lease = await waiting;
        assert.ok(performance.now() - startedAt < 1_400);
        await lease.release();
      },
    },
  },
];
