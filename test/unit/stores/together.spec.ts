import { beforeEach, describe, expect, it } from 'vitest';
import { NO_ROW, SqlFailure, type Together } from '../../../lib/stores/sql/sql.js';
import type { SendTerms } from '../../../lib/stores/load/unsent-requests.js';
import type { Watched } from '../../support/core/core-under-test.js';
import { formOf, replyTo, TIMEOUT_MS, ToldLane } from '../../support/sql/told-lane.js';

describe('requests of a lane that can be sent together', () => {
  let told: ToldLane;
  let take: Together<string, string>;
  const ask = (by: Together<string, string>, claim: string, terms?: SendTerms): Watched<string> =>
    told.ask(by, claim, terms);

  beforeEach(async () => {
    told = await ToldLane.busy();
    ({ take } = told);
  });

  it('what waits for one statement is the next one, and each gets its own reply', async () => {
    const asked = ['a', 'b', 'c'].map((key) => ask(take, key));
    await told.proceed();
    expect(told.sent).toEqual(['other', 'take a b c']);
    expect(asked.map(({ value }) => value)).toEqual(['take a', 'take b', 'take c']);
  });

  it('one does not wait for others, and has its own statement', async () => {
    await told.proceed();
    const one = ask(take, 'a');
    expect(told.sent).toEqual(['other', 'alone a']);
    await told.proceed();
    expect(one.value).toBe('alone a');
  });

  it('each key is there once, and requests about it keep their order, whatever they are', async () => {
    const release = formOf('release');
    ask(take, 'k');
    ask(release, 'k', { urgency: 'release' });
    ask(take, 'k');
    for (const key of ['a', 'b']) ask(release, key, { urgency: 'release' });
    for (const key of ['c', 'd']) ask(take, key);
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['take k c d', 'release a b k', 'alone k']);
  });

  it('requests of different purposes are never sent together', async () => {
    const keep = formOf('keep');
    const release = formOf('release');
    for (const key of ['a', 'b']) {
      ask(take, `t${key}`);
      ask(keep, `k${key}`, { urgency: 'release' });
      ask(release, `r${key}`, { urgency: 'release' });
    }
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['keep ka kb', 'release ra rb', 'take ta tb']);
  });

  it('a request without a reply is asked alone, before those that came later', async () => {
    const asked = ['a', 'b'].map((key) => ask(take, key));
    told.reply = (text) => (text === 'take a b' ? [undefined, 'got b'] : replyTo(text));
    await told.replies();
    void told.replies();
    ask(take, 'later');
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['take a b', 'alone a', 'alone later']);
    expect(asked.map(({ value }) => value)).toEqual(['alone a', 'got b']);
  });

  it('a request that was skipped asks first whether its row is locked, where a statement would wait long', async () => {
    told = await ToldLane.busy(undefined, {}, true);
    for (const key of ['a', 'b']) ask(take, key);
    told.reply = (text) => (text === 'take a b' ? [undefined, 'got b'] : replyTo(text));
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['take a b', 'probe a', 'alone a']);
  });

  it('requests whose row is missing are inserted together, by a statement of their own', async () => {
    const asked = ['a', 'b', 'c'].map((key) => ask(take, key));
    told.reply = (text) => (text === 'take a b c' ? [NO_ROW, 'got b', NO_ROW] : replyTo(text));
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['take a b c', 'insert a c']);
    expect(asked.map(({ value }) => value)).toEqual(['insert a', 'got b', 'insert c']);
  });

  it('a request that is withdrawn between two of its statements is not sent again', async () => {
    const signal = new AbortController();
    const gone = ask(take, 'a', { withdrawnBy: [signal.signal] });
    ask(take, 'b');
    told.reply = (text) => {
      if (text === 'take a b') signal.abort();
      return text === 'take a b' ? [undefined, 'got b'] : replyTo(text);
    };
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['take a b']);
    expect(gone.error).toMatchObject({ outcome: 'not-executed', claimOnly: true });
  });

  it('one whose time is over after its first statement still has a reply', async () => {
    const asked = ask(take, 'a', { until: told.runtime.now() + 10 });
    ask(take, 'b');
    told.reply = (text) => (text === 'take a b' ? [undefined, 'got b'] : replyTo(text));
    await told.replies();
    await told.runtime.pass(20);
    await told.proceed();
    expect(asked.value).toBe('alone a');
  });

  it('an error of one row reaches the request of that row alone', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e'];
    const asked = keys.map((key) => ask(take, key));
    told.reply = (text) => {
      if (text.split(' ').includes('d')) throw new SqlFailure('a check of the row fails', 'not-executed', {});
      return replyTo(text);
    };
    await told.proceed();
    expect(told.sent[1]).toBe('take a b c d e');
    expect(asked.map(({ state }) => state)).toEqual([
      ...['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    ]);
    expect(asked[3]!.error).toMatchObject({ message: 'a check of the row fails' });
    expect(told.sent.length).toBeLessThan(9);
  });

  it('a row that others have locked delays the others once: then each asks first, and none waits in the server', async () => {
    told = await ToldLane.busy(undefined, {}, true);
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const asked = keys.map((key) => ask(take, key));
    told.reply = (text) => {
      if (text.split(' ').includes('d')) throw new SqlFailure('locked', 'not-executed', { transient: true });
      return replyTo(text);
    };
    await told.proceed();
    expect(told.sent.slice(2)).toEqual(
      keys.flatMap((key) => (key === 'd' ? ['probe d'] : [`probe ${key}`, `alone ${key}`])),
    );
    expect(asked.map(({ state }) => state)).toEqual(
      keys.map((key) => (key === 'd' ? 'pending' : 'fulfilled')),
    );
  });

  it('an overload, and an unknown outcome, reach all of them, and nothing is asked again', async () => {
    for (const failure of [
      new SqlFailure('too many', 'not-executed', { passing: true }),
      new SqlFailure('the connection ended', 'unknown', { passing: true }),
    ]) {
      const asked = ['a', 'b'].map((key) => ask(take, key));
      const { length } = told.sent;
      told.reply = (text) => {
        if (text.startsWith('take')) throw failure;
        return replyTo(text);
      };
      await told.proceed();
      await told.keepBusy();
      expect(asked.map(({ error }) => error)).toEqual([failure, failure]);
      expect(told.sent.slice(length)).toEqual(['take a b', 'other']);
    }
  });

  it('has at most 64 of them; less while the server is slow, and more when it is not', async () => {
    const sizes = (): number[] =>
      told.sent.flatMap((text) => (text.startsWith('take') ? [text.split(' ').length - 1] : []));
    const many = (from: number): void => {
      for (let i = from; i < from + 150; i++) ask(take, `key${i}`, { until: Infinity });
    };
    many(0);
    await told.proceed();
    expect(sizes()).toEqual([64, 64, 22]);
    told.sent = [];
    await told.keepBusy();
    many(200);
    await told.replies();
    for (const ms of [TIMEOUT_MS / 2, TIMEOUT_MS / 2, 1]) {
      await told.runtime.pass(ms);
      await told.replies();
    }
    await told.proceed();
    expect(sizes()).toEqual([64, 32, 16, 32, 6]);
  });

  it('each is told when its statement is sent, and again when it is sent again', async () => {
    const at = told.runtime.now();
    ask(take, 'a');
    ask(take, 'b');
    await told.runtime.pass(100);
    await told.replies();
    told.reply = (text) => (text === 'take a b' ? [undefined, 'got b'] : replyTo(text));
    await told.runtime.pass(50);
    await told.proceed();
    expect(told.sentAt).toEqual([at + 100, at + 100, at + 150]);
  });

  it('a connection on which several rows would lock others sends each alone', async () => {
    told = await ToldLane.busy(undefined, { sendsAlone: true });
    for (const key of ['a', 'b']) ask(take, key);
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['alone a', 'alone b']);
  });

  it('close() does not send an acquire again whose row others have locked', async () => {
    await told.proceed();
    const acquire = ask(take, 'a');
    told.reply = () => {
      throw new SqlFailure('locked', 'not-executed', { transient: true });
    };
    void told.lane.close();
    await told.replies();
    expect(acquire.error).toMatchObject({ message: 'the lock store is closed', outcome: 'not-executed' });
  });

  it('close() sends the releases together, and no acquire again', async () => {
    const release = formOf('release');
    const [acquire, free] = ['a', 'b'].map((key) => ask(take, key)) as [Watched<string>, Watched<string>];
    told.reply = (text) => (text === 'take a b' ? [undefined, 'got b'] : replyTo(text));
    await told.replies();
    for (const key of ['c', 'd']) ask(release, key, { urgency: 'release' });
    void told.lane.close();
    await told.proceed();
    expect(told.sent.slice(1)).toEqual(['take a b', 'release c d']);
    expect([acquire.state, free.value]).toEqual(['rejected', 'got b']);
  });
});
