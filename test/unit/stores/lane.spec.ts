import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { Load, MAX_UNSENT } from '../../../lib/stores/load/load.js';
import type { SendTerms } from '../../../lib/stores/load/unsent-requests.js';
import { Lane } from '../../../lib/stores/sql/lane.js';
import { raw, SqlFailure, type SqlSession, type Statement } from '../../../lib/stores/sql/sql.js';
import { watched, type Watched } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const nothing = (): void => undefined;

it('statements and connections of a lane are outside the context of the caller', async () => {
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const session = {
    isOver: false,
    send: async () => void seen.push(['sent', requests.getStore()]),
    destroy: nothing,
  } as unknown as SqlSession;
  const lane = new Lane({
    ...{ name: 'a database', runtime: systemRuntime(), timeoutMs: 1_000 },
    connect: async () => {
      seen.push(['connected', requests.getStore()]);
      return session;
    },
  });
  await requests.run('a request', async () => {
    for (const n of [1, 2]) {
      await lane.run(() => ({ sql: raw(`SELECT ${n}`), read: nothing }));
      expect(requests.getStore()).toBe('a request');
    }
  });
  await lane.close();
  expect(seen).toEqual([
    ['connected', undefined],
    ['sent', undefined],
    ['sent', undefined],
  ]);
});

const TIMEOUT_MS = 2_000;
const locked = (): SqlFailure => new SqlFailure('row locked', 'not-executed', { transient: true });

/** A connection that the test answers for. */
class ScriptedSession implements SqlSession {
  isOver = false;
  private settle: { resolve: (value: never) => void; reject: (failure: SqlFailure) => void } | undefined;

  constructor(private readonly sent: string[]) {}

  send<T>({ sql }: Statement<T>): Promise<T> {
    this.sent.push(sql.texts[0]!);
    return new Promise((resolve, reject) => (this.settle = { resolve, reject }));
  }

  destroy(): void {
    this.isOver = true;
    this.settle?.reject(new SqlFailure('closed', 'unknown', {}, this));
  }

  /** Answers the statement under way, and lets the next one be sent. */
  async reply(failure?: SqlFailure): Promise<void> {
    if (failure) this.settle!.reject(failure);
    else this.settle!.resolve('done' as never);
    await settled();
  }
}

describe('a lane', () => {
  let runtime: VirtualRuntime;
  let sent: string[];
  let sessions: ScriptedSession[];
  let load: Load;
  let connect: () => Promise<SqlSession>;

  const newLane = (): Lane =>
    new Lane({ name: 'a database', runtime, timeoutMs: TIMEOUT_MS, load, connect: () => connect() });

  const run = (lane: Lane, text: string, terms?: SendTerms): Watched<unknown> =>
    watched(lane.run(() => ({ sql: raw(text), read: nothing }), terms));

  /** Returns a lane with a statement under way, behind which others wait. */
  const busyLane = async (): Promise<Lane> => {
    const lane = newLane();
    run(lane, 'first');
    await settled();
    return lane;
  };

  const session = (): ScriptedSession => sessions.at(-1)!;

  const replyToAll = async (): Promise<void> => {
    for (let before = -1; before < sent.length;) {
      before = sent.length;
      await session().reply();
    }
  };

  beforeEach(() => {
    runtime = new VirtualRuntime();
    sent = [];
    sessions = [];
    load = new Load();
    connect = () => {
      sessions.push(new ScriptedSession(sent));
      return Promise.resolve(session());
    };
  });

  it('sends renewals, then releases, then acquires of waiters, then other statements', async () => {
    const lane = await busyLane();
    for (const urgency of ['other', 'woken', 'release', 'renewal'] as const)
      for (const n of [1, 2]) run(lane, `${urgency} ${n}`, { urgency, urgentFrom: 0 });
    await replyToAll();
    expect(sent.slice(1)).toEqual(
      ['renewal', 'release', 'woken', 'other'].flatMap((name) => [`${name} 1`, `${name} 2`]),
    );
  });

  it('sends other statements between renewals that have time, and none between urgent ones', async () => {
    const lane = await busyLane();
    const at = runtime.now();
    const renewal = { urgency: 'renewal', until: at + 30_000 } as const;
    for (const n of [1, 2, 3]) run(lane, `renewal ${n}`, { ...renewal, urgentFrom: at + 10_000 });
    run(lane, 'urgent', { ...renewal, urgentFrom: at - 1 });
    for (const n of [1, 2, 3]) run(lane, `acquire ${n}`);
    await replyToAll();
    expect(sent.slice(1)).toEqual([
      ...['urgent', 'acquire 1', 'renewal 1', 'acquire 2', 'renewal 2', 'acquire 3', 'renewal 3'],
    ]);
  });

  it('keeps the order of statements about one key, and sends what is before an urgent one as early', async () => {
    const lane = await busyLane();
    run(lane, 'acquire a');
    run(lane, 'acquire k', { lines: ['k'] });
    run(lane, 'woken', { urgency: 'woken', lines: ['w'] });
    run(lane, 'release k', { urgency: 'release', lines: ['k'] });
    run(lane, 'release b', { urgency: 'release', lines: ['b'] });
    await replyToAll();
    expect(sent.slice(1)).toEqual(['acquire k', 'release b', 'release k', 'woken', 'acquire a']);
  });

  it('a renewal passes what waits before it, but no other renewal, and is not passed by a release', async () => {
    const lane = await busyLane();
    run(lane, 'acquire k', { lines: ['k'] });
    run(lane, 'release k', { urgency: 'release', lines: ['k'] });
    run(lane, 'renew j and k', { urgency: 'renewal', lines: ['j', 'k'], urgentFrom: 1 });
    run(lane, 'shorten j', { urgency: 'renewal', lines: ['j'], urgentFrom: 0 });
    run(lane, 'release j', { urgency: 'release', lines: ['j'] });
    await replyToAll();
    const inOrder = ['renew j and k', 'shorten j', 'acquire k', 'release j', 'release k'];
    expect(sent.slice(1)).toEqual(inOrder);
  });

  it('a renewal does not wait for a statement of its key that was put aside', async () => {
    const lane = newLane();
    run(lane, 'locked', { lines: ['k'], until: Infinity });
    await settled();
    await session().reply(locked());
    run(lane, 'release of another', { urgency: 'release', lines: ['k'] });
    const renewal = run(lane, 'renew j and k', { urgency: 'renewal', lines: ['j', 'k'] });
    await session().reply();
    expect([sent, renewal.state]).toEqual([['locked', 'renew j and k'], 'fulfilled']);
  });

  it('withdraws an unsent acquire, and leaves a sent one alone', async () => {
    const lane = newLane();
    const acquire = { lines: ['k'], owner: 'A' };
    const under = run(lane, 'acquire A', acquire);
    await settled();
    const unsent = run(lane, 'acquire B', { ...acquire, owner: 'B' });
    for (const owner of ['A', 'B']) lane.withdraw('k', owner);
    const release = run(lane, 'release B', { urgency: 'release', lines: ['k'] });
    await replyToAll();
    expect(sent).toEqual(['acquire A', 'release B']);
    expect(unsent.error).toMatchObject({ outcome: 'not-executed', claimOnly: true });
    expect([under.state, release.state]).toEqual(['fulfilled', 'fulfilled']);
  });

  it('never sends a statement whose signal has aborted', async () => {
    const lane = await busyLane();
    const early = new AbortController();
    early.abort();
    const signal = new AbortController();
    const aborted = run(lane, 'aborted before', { withdrawnBy: [early.signal] });
    const later = run(lane, 'aborted later', { withdrawnBy: [signal.signal] });
    signal.abort();
    await replyToAll();
    expect(sent).toEqual(['first']);
    for (const { error } of [aborted, later]) expect(error).toMatchObject({ outcome: 'not-executed' });
  });

  it('a statement whose time is over before its turn fails as overload, and the connection lives', async () => {
    const lane = await busyLane();
    const ends = [undefined, 300].map((ms) =>
      run(lane, 'never', { until: ms === undefined ? undefined : runtime.now() + ms }),
    );
    const later = run(lane, 'later', { until: runtime.now() + 60_000 });
    await runtime.pass(900);
    await session().reply();
    expect(sent).toEqual(['first', 'never']);
    await runtime.pass(900);
    expect(ends.map(({ state }) => state)).toEqual(['pending', 'rejected']);
    expect(ends[1]!.error).toMatchObject({
      ...{ outcome: 'not-executed', overloaded: true, passing: false },
      message:
        'this process asks a database for more than it serves: 3 requests wait, and about 1 are served a second',
    });
    await replyToAll();
    expect([later.state, sessions.length]).toEqual(['fulfilled', 1]);
  });

  it('a statement whose time was over from the start is not sent, unless it is a release', async () => {
    const lane = await busyLane();
    const until = runtime.now() - 1;
    const acquire = run(lane, 'acquire', { until });
    run(lane, 'release', { urgency: 'release', until });
    await runtime.pass(1);
    expect(acquire.error).toMatchObject({ overloaded: true });
    await replyToAll();
    expect(sent).toEqual(['first', 'release']);
  });

  it('a statement has its time-out from its sending, however long it has waited', async () => {
    const lane = await busyLane();
    const waited = run(lane, 'waited', { until: runtime.now() + 60_000 });
    await runtime.pass(TIMEOUT_MS - 1);
    await session().reply();
    await runtime.pass(TIMEOUT_MS - 1);
    expect([waited.state, session().isOver]).toEqual(['pending', false]);
    await runtime.pass(1);
    expect(waited.error).toMatchObject({ outcome: 'unknown', message: /did not answer within 2000 ms/ });
    expect(sessions[0]!.isOver).toBe(true);
  });

  it('without a connection, an unsent statement is a failure of the store', async () => {
    connect = () => new Promise(nothing);
    const lost = run(newLane(), 'never');
    await runtime.pass(TIMEOUT_MS);
    expect(lost.error).toMatchObject({
      ...{ outcome: 'not-executed', overloaded: false, passing: true, transient: false },
      message: 'there was no connection to a database within 2000 ms',
    });
  });

  it('a connection that takes longer than a caller has time is no outage, unless the last one was refused', async () => {
    let refuse: (failure: SqlFailure) => void = nothing;
    connect = () => new Promise((_, reject) => (refuse = reject));
    const lane = newLane();
    const short = (): Watched<unknown> => run(lane, 'short', { until: runtime.now() + 200 });
    const first = short();
    await runtime.pass(200);
    expect(first.error).toMatchObject({ outcome: 'not-executed', transient: true });
    const refusal = new SqlFailure('connection refused', 'not-executed', { passing: true });
    refuse(refusal);
    await settled();
    const second = short();
    await runtime.pass(200);
    expect(second.error).toMatchObject({ transient: false, passing: true, cause: refusal });
  });

  it('behind a server that is silent, an unsent statement says so, and the store fails only after the time-out', async () => {
    const lane = await busyLane();
    const unsent = run(lane, 'never', { until: runtime.now() + 1_500 });
    const later = run(lane, 'later', { until: runtime.now() + 60_000 });
    connect = () => new Promise(nothing);
    await runtime.pass(1_500);
    expect(unsent.error).toMatchObject({
      ...{ overloaded: true, passing: false, outcome: 'not-executed' },
      message: expect.stringMatching(/^a database has not replied for 1500 ms: 2 requests wait, /),
    });
    await runtime.pass(TIMEOUT_MS);
    expect([later.state, session().isOver]).toEqual(['pending', true]);
  });

  it('reads replies that have come while the process stood still, before it judges the server', async () => {
    const soon: (() => void)[] = [];
    runtime.soon = (action) => void soon.push(action);
    /** Timers fire, then replies are read, then comes what runs soon. */
    const standStill = async (ms: number): Promise<void> => {
      await runtime.pass(ms);
      await session().reply();
      for (const action of soon.splice(0)) action();
      await settled();
    };
    const lane = await busyLane();
    const unsent = run(lane, 'acquire', { until: runtime.now() + 1_500 });
    await standStill(1_500);
    expect(unsent.error).toMatchObject({ overloaded: true });
    const late = run(lane, 'late');
    await settled();
    await standStill(TIMEOUT_MS);
    expect([late.state, session().isOver]).toEqual(['fulfilled', false]);
  });

  it('puts a statement aside whose row others have locked, until its time is over', async () => {
    const lane = newLane();
    const at = runtime.now();
    const blocked = run(lane, 'locked', { lines: ['k'], until: at + 500 });
    run(lane, 'behind it', { lines: ['k'] });
    run(lane, 'free', { lines: ['j'] });
    await settled();
    await session().reply(locked());
    expect(sent, 'others do not wait for the row').toEqual(['locked', 'free']);
    await session().reply();
    while (blocked.state === 'pending') {
      const { length } = sent;
      await runtime.pass(5);
      if (sent.length > length && blocked.state === 'pending') await session().reply(locked());
    }
    const tries = sent.filter((text) => text === 'locked').length;
    expect(tries).toBeGreaterThan(5);
    expect(tries).toBeLessThan(12);
    expect([blocked.error, runtime.now() - at]).toEqual([
      expect.objectContaining({ message: 'row locked' }),
      500,
    ]);
    expect(sent.at(-1)).toBe('behind it');
  });

  it('asks whether the row is still locked before it sends the statement again', async () => {
    const probe = (key: string): Statement<void> => ({ sql: raw(`is ${key} locked?`), read: nothing });
    const lane = new Lane({
      ...{ name: 'a database', runtime, timeoutMs: TIMEOUT_MS, load, probe },
      connect: () => connect(),
    });
    const acquired = run(lane, 'acquire', { lines: ['k'], until: Infinity });
    await settled();
    await session().reply(locked());
    await runtime.pass(5);
    await session().reply(locked());
    await runtime.pass(10);
    expect(sent).toEqual(['acquire', 'is k locked?', 'is k locked?']);
    await replyToAll();
    expect([sent.at(-1), acquired.state]).toEqual(['acquire', 'fulfilled']);
  });

  it('a renewal whose rows are locked fails at once: others of its batch wait for the reply', async () => {
    const lane = newLane();
    const renewal = run(lane, 'renewal', { urgency: 'renewal' });
    await settled();
    await session().reply(locked());
    expect(renewal.error).toMatchObject({ message: 'row locked' });
  });

  it('statements that wait long for a lock of others keep one lane of the store', async () => {
    const lanes = [newLane(), newLane()];
    for (const lane of lanes) run(lane, 'gap', { until: Infinity });
    await settled();
    const [a, b] = sessions as [ScriptedSession, ScriptedSession];
    await runtime.pass(1_000);
    await a.reply(locked());
    await b.reply(locked());
    await runtime.pass(1_000);
    expect(sent, 'one of them waits again').toEqual(['gap', 'gap', 'gap']);
    for (const lane of lanes) run(lane, 'free');
    await settled();
    expect(sent.filter((text) => text === 'free')).toHaveLength(1);
  });

  it('close() sends the releases that wait, and nothing else', async () => {
    const lane = await busyLane();
    const [acquire, release] = [run(lane, 'acquire'), run(lane, 'release', { urgency: 'release' })];
    const closed = watched(lane.close());
    await settled();
    expect([acquire.state, closed.state]).toEqual(['rejected', 'pending']);
    await replyToAll();
    expect(sent).toEqual(['first', 'release']);
    expect([release.state, closed.state, session().isOver]).toEqual(['fulfilled', 'fulfilled', true]);
    expect(run(lane, 'late').state).toBe('pending');
  });

  it('close() waits for one time-out at most', async () => {
    const lane = await busyLane();
    const release = run(lane, 'release', { urgency: 'release', until: Infinity });
    const closed = watched(lane.close());
    await runtime.pass(TIMEOUT_MS);
    expect([release.state, closed.state, session().isOver]).toEqual(['rejected', 'fulfilled', true]);
  });

  it(`refuses acquires when ${MAX_UNSENT} statements wait, never renewals and releases`, async () => {
    const lane = await busyLane();
    load.unsent = MAX_UNSENT;
    const refused = run(lane, 'acquire');
    await settled();
    expect(refused.error).toMatchObject({ overloaded: true, outcome: 'not-executed' });
    for (const urgency of ['renewal', 'release'] as const) run(lane, urgency, { urgency });
    await replyToAll();
    expect(sent).toEqual(['first', 'renewal', 'release']);
  });
});
