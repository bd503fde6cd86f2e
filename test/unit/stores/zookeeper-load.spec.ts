import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import type { Claim } from '../../../lib/core/seam/claim.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { Frames } from '../../../lib/stores/zookeeper/frames.js';
import { JuteReader, JuteWriter } from '../../../lib/stores/zookeeper/jute.js';
import { LockPaths } from '../../../lib/stores/zookeeper/lock-path.js';
import { NodeLocks, type NodeLocksHost } from '../../../lib/stores/zookeeper/node-locks.js';
import { PathOrder } from '../../../lib/stores/zookeeper/path-order.js';
import { Places } from '../../../lib/stores/zookeeper/place.js';
import { remove } from '../../../lib/stores/zookeeper/requests.js';
import { CODE } from '../../../lib/stores/zookeeper/zk-failure.js';
import { ZkSession, type RequestTerms, type ZkAuth } from '../../../lib/stores/zookeeper/zk-session.js';
import { ZookeeperKind } from '../../../lib/stores/zookeeper/zookeeper-kind.js';
import { ZookeeperPermits } from '../../../lib/stores/zookeeper/zookeeper-permits.js';
import { watched } from '../../support/core/core-under-test.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';
import { claimFor } from '../../support/stores/harness.js';

const SESSION_MS = 6_000;
const COMMAND_MS = 2_000;

/** A server that serves one request after the other, each in 1 ms, and replies that it was done. */
class SlowServer extends Duplex {
  readonly xids: number[] = [];
  /** Called before each reply; returns its code. */
  onServe: () => number = () => 0;
  private readonly frames = new Frames();
  private readonly queue: number[] = [];
  private isGreeted = false;

  constructor(
    private readonly runtime: VirtualRuntime,
    private readonly greets: boolean,
  ) {
    super();
  }

  setNoDelay(): this {
    return this;
  }

  override _read(): void {
    // Replies are pushed when they are due.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    for (const frame of this.frames.add(chunk)) this.received(frame);
    done();
  }

  private received(frame: Buffer): void {
    if (!this.greets) return;
    if (!this.isGreeted) {
      this.isGreeted = true;
      const grant = new JuteWriter().int(0).int(SESSION_MS).long(1n).bytes(Buffer.alloc(16));
      this.push(grant.frame());
      return;
    }
    if (this.queue.push(new JuteReader(frame).int()) === 1) this.serveLater();
  }

  private serveLater(): void {
    this.runtime.setTimer(() => {
      const xid = this.queue.shift()!;
      this.xids.push(xid);
      this.push(new JuteWriter().int(xid).long(1n).int(this.onServe()).frame());
      if (this.queue.length > 0) this.serveLater();
    }, 1);
  }
}

const sessions: ZkSession[] = [];
afterEach(async () => {
  for (const session of sessions.splice(0)) await session.close({ keepsNodes: true });
});

const setUp = (auth: readonly ZkAuth[] = [], addresses = 1) => {
  const runtime = new VirtualRuntime();
  const servers: SlowServer[] = [];
  const dials: number[] = [];
  const dial = (address: number): Socket => {
    const server = new SlowServer(runtime, test.greets);
    servers.push(server);
    dials.push(address);
    test.onDial(server);
    return server as unknown as Socket;
  };
  // The clock may jump, as after sleep.
  const clock = Object.assign(Object.create(runtime) as VirtualRuntime, {
    now: () => runtime.now() + test.asleepMs,
  });
  const session = new ZkSession({
    runtime: clock,
    servers: Array.from({ length: addresses }, (_none, address) => () => dial(address)),
    auth: () => auth,
    commandTimeoutMs: COMMAND_MS,
  });
  session.timeoutMs = SESSION_MS;
  sessions.push(session);
  const onDial = (_server: SlowServer): void => undefined;
  const test = { runtime, servers, dials, session, greets: true, asleepMs: 0, onDial };
  return test;
};

/** Sends a request, and returns how it ended: with its reply, or with which outcome. */
const sent = (
  { runtime, session }: ReturnType<typeof setUp>,
  mayWait = true,
  terms: Partial<RequestTerms> = {},
) => {
  const at = runtime.now();
  const reply = { outcome: 'none', afterMs: Infinity };
  const ended = (outcome: string): void =>
    void Object.assign(reply, { outcome, afterMs: runtime.now() - at });
  session.request(remove('/key'), { mayWait, ...terms }).then(
    () => ended('replied'),
    (failure: unknown) => ended((failure as StoreFailure).outcome),
  );
  return reply;
};

describe('a connection', () => {
  it('whose last reply came too late while it was set up, gets no request', async () => {
    const test = setUp([{ scheme: 'digest', credentials: 'me:secret' }]);
    test.onDial = (server) => {
      server.onServe = () => {
        if (test.servers.length === 1) test.asleepMs = SESSION_MS;
        return 0;
      };
    };
    const request = sent(test, true, { until: 4 * SESSION_MS });
    await test.runtime.pass(2_000);
    expect(request.outcome).toBe('replied');
    expect(test.servers).toHaveLength(2);
  });

  it('is dropped when the server says that the session is over, which is over at once', async () => {
    const test = setUp();
    const session = await test.session.with({}, (one) => Promise.resolve(one));
    test.greets = false;
    test.servers[0]!.onServe = () => CODE.sessionExpired;
    sent(test);
    await test.runtime.pass(500);
    expect([session.over.aborted, test.servers[0]!.destroyed]).toEqual([true, true]);
  });

  it('on which a session is found to have lapsed ends it, however long the sleep was before the reply', async () => {
    const test = setUp();
    const session = await test.session.with({}, (one) => Promise.resolve(one));
    test.onDial = () => void (test.asleepMs = SESSION_MS);
    test.servers[0]!.destroy();
    await test.runtime.pass(250);
    expect(session.over.aborted).toBe(true);
    expect(test.servers).toHaveLength(2);
  });

  it('that has ended is followed by one to another server', async () => {
    const test = setUp([], 3);
    for (let connections = 1; connections <= 4; connections++) {
      await test.session.with({}, () => Promise.resolve());
      expect(test.dials).toHaveLength(connections);
      test.servers.at(-1)!.destroy();
      await test.runtime.pass(400);
    }
    expect(test.dials.filter((address, at) => address === test.dials[at - 1])).toEqual([]);
  });
});

describe('a burst of more requests than the server serves within their time', () => {
  it('ends neither connection nor session, and what was not sent is not executed', async () => {
    const test = setUp();
    const replies = Array.from({ length: 5_000 }, () => sent(test));
    await test.runtime.pass(2 * SESSION_MS);
    const count = (wanted: string): number => replies.filter(({ outcome }) => outcome === wanted).length;
    expect(test.servers).toHaveLength(1);
    expect(count('replied')).toBeGreaterThan(COMMAND_MS / 2);
    expect(count('replied') + count('not-executed')).toBe(replies.length);
    expect(Math.max(...replies.map(({ afterMs }) => afterMs))).toBeLessThan(2 * COMMAND_MS);
  });

  it('delays no release', async () => {
    const test = setUp();
    const burst = Array.from({ length: 5_000 }, () => sent(test));
    await test.runtime.pass(100);
    const release = sent(test, false);
    await test.runtime.pass(500);
    expect(release.outcome).toBe('replied');
    expect(burst.filter(({ outcome }) => outcome === 'none').length).toBeGreaterThan(1_000);
  });

  it('is sent no longer for callers that have gone, or whose time is over', async () => {
    const test = setUp();
    sent(test);
    await test.runtime.pass(10);
    const leaving = new AbortController();
    const burst = Array.from({ length: 1_000 }, () => sent(test));
    const left = sent(test, true, { withdrawnBy: [leaving.signal] });
    const short = sent(test, true, { until: test.runtime.now() + 200 });
    leaving.abort();
    await test.runtime.pass(200);
    expect([left, short]).toEqual([
      { outcome: 'not-executed', afterMs: 0 },
      { outcome: 'not-executed', afterMs: 200 },
    ]);
    await test.runtime.pass(COMMAND_MS);
    expect(burst.every(({ outcome }) => outcome === 'replied')).toBe(true);
  });

  it.each(['exclusive', 'permit'] as const)('ends the look of a short call in its time: %s', async (kind) => {
    const test = setUp();
    sent(test);
    await test.runtime.pass(10);
    for (let i = 0; i < 1_000; i += 1) sent(test);
    const { runtime, session } = test;
    const host = {
      ...{
        session,
        paths: new LockPaths('', '/locks', undefined),
        order: new PathOrder(),
        places: new Places(),
      },
      locks: new NodeLocks({ runtime, session } as unknown as NodeLocksHost),
    };
    const store = kind === 'permit' ? new ZookeeperPermits(host) : new ZookeeperKind(kind, host);
    const claim = { ...claimFor('k', { waits: false }), kind, of: 3, until: runtime.now() + 200 };
    const look = watched(store.acquire(claim as Claim));
    await runtime.pass(200);
    expect(look.error).toMatchObject({ overloaded: true });
    expect((look.error as Error).message).toMatch(
      /: \d{3} requests wait, and about \d+ are served a second$/,
    );
  });

  it('is not sent on a new connection for callers that have gone meanwhile', async () => {
    const test = setUp();
    const leaving = new AbortController();
    const left = sent(test, true, { withdrawnBy: [leaving.signal] });
    const patient = sent(test);
    leaving.abort();
    await test.runtime.pass(10);
    expect([left.outcome, patient.outcome, test.servers[0]!.xids.length]).toEqual([
      'not-executed',
      'replied',
      1,
    ]);
  });

  it('is no outage for a caller with less time than a connection takes, unless the last one was refused', async () => {
    const test = setUp();
    const early = async (ms: number): Promise<StoreFailure> => {
      const until = test.runtime.now() + ms;
      const asked = watched(test.session.request(remove('/key'), { mayWait: true, until }));
      await test.runtime.pass(ms);
      return asked.error as StoreFailure;
    };
    test.greets = false;
    expect(await early(50)).toMatchObject({ transient: true, outcome: 'not-executed' });
    test.servers[0]!.destroy();
    await test.runtime.pass(300);
    expect(await early(50)).toMatchObject({ transient: false, passing: true });
    test.greets = true;
    test.servers[1]!.destroy();
    const patient = sent(test);
    await test.runtime.pass(400);
    expect(patient.outcome).toBe('replied');
    test.greets = false;
    test.servers[2]!.destroy();
    await test.runtime.pass(1);
    expect(await early(50)).toMatchObject({ transient: true });
  });

  it('goes on with the next connection, behind what was under way', async () => {
    const test = setUp();
    sent(test);
    await test.runtime.pass(10);
    const burst = Array.from({ length: 300 }, () => sent(test));
    await test.runtime.pass(10);
    test.servers[0]!.destroy();
    await test.runtime.pass(COMMAND_MS);
    const outcomes = burst.map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'unknown')).toHaveLength(128);
    expect(outcomes.filter((outcome) => outcome === 'replied')).toHaveLength(300 - 128);
    expect(test.servers).toHaveLength(2);
  });
});
