import { describe, expect, it } from 'vitest';
import { cleanError } from '../../../lib/stores/redis/connection/clean-error.js';
import {
  failureOf,
  isBusyScript,
  isNoScript,
  isWrongType,
  mayReconnect,
  replyError,
  unwrapped,
} from '../../../lib/stores/redis/connection/redis-failure.js';
import { MasterSearch } from '../../../lib/stores/redis/connection/master-search.js';
import { readBatch } from '../../../lib/stores/redis/connection/shared-runs.js';
import { readExtend, entryFailure } from '../../../lib/stores/redis/kinds/shared-replies.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

/*
 * As real servers word it. Before Redis 7 what goes wrong in a script arrives inside of another error, so that its
 * first word is no longer the first one.
 */
const SHA = '3c4fa1d6a8a0f2b7e9d1c5b3a7f6e4d2c1b0a9f8';
const WRAPPED = `ERR Error running script (call to f_${SHA}): `;
const TEXTS = {
  WRONGTYPE: 'WRONGTYPE Operation against a key holding the wrong kind of value',
  READONLY: "READONLY You can't write against a read only replica.",
  FENCE: 'FENCE nest_redis_lock:fence:{7} holds no usable fencing token',
  BUSY: 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  NOSCRIPT: 'NOSCRIPT No matching script. Please use EVAL.',
  MOVED: 'MOVED 3999 127.0.0.1:6381',
  TRYAGAIN: 'TRYAGAIN Multiple keys request during rehashing of slot',
  NOPERM: "The user executing the script can't run this command or subcommand",
};
/** Replies of a server that is not the master, or perhaps not any more. */
const NO_MASTER = {
  READONLY: TEXTS.READONLY,
  NOREPLICAS: 'NOREPLICAS Not enough good replicas to write.',
  LOADING: 'LOADING Redis is loading the dataset in memory',
  MASTERDOWN: "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
};
type Word = keyof typeof TEXTS;

/** The forms in which servers hand on an error of a script. */
const FORMS: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'of Redis 6.2': (text) => `${WRAPPED}@user_script:12: ${text}`,
  'of Redis 6.2, which it made itself': (text) => `${WRAPPED}@user_script:12: @user_script: 12: -${text}`,
  'of Redis 5': (text) => `${WRAPPED}@user_script:3: @user_script: 3: ${text}`,
  'of Redis 6.2, caught by the script': (text) => `@user_script: 12: -${text}`,
  'of Redis 6.2, caught by a function of the script': (text) => `@user_script:12: ${text}`,
  'of Redis 7': (text) => `${text} script: ${SHA}, on @user_script:12.`,
};

const isNoMaster = (reply: unknown): boolean => new MasterSearch(new VirtualRuntime()).isDueTo(reply);
const session = { of: Symbol('connection'), alive: true, id: '7', address: undefined, probed: undefined };
const failure = (message: string) =>
  failureOf(replyError(message), session, (error) => error as Error, {
    keys: ['lock:order'],
    refusals: [
      { word: 'FENCE', keyOnly: true },
      { word: 'ODD', plain: true, keyOnly: true, claimOnly: true },
    ],
  });

describe.each(Object.entries(FORMS))('an error of a script, %s,', (_form, wrap) => {
  it('is told by its own first word', () => {
    for (const [word, text] of Object.entries(TEXTS)) {
      expect(unwrapped(wrap(text)).startsWith(text.slice(0, 20)), word).toBe(true);
      const error = replyError(wrap(text));
      expect([isNoMaster(error), isWrongType(error), isBusyScript(error), isNoScript(error)], word).toEqual(
        ['READONLY', 'WRONGTYPE', 'BUSY', 'NOSCRIPT'].map((one) => one === word),
      );
    }
  });

  it('is a failure of this key alone, a transient failure, or a failure of the store', () => {
    const kinds = Object.fromEntries(
      Object.entries(TEXTS).map(([word, text]) => {
        const { keyOnly, transient, outcome } = failure(wrap(text));
        expect(outcome).toBe('not-executed');
        return [word, keyOnly ? 'key' : transient ? 'transient' : 'store'];
      }),
    );
    expect(kinds).toEqual({
      WRONGTYPE: 'key',
      FENCE: 'key',
      MOVED: 'transient',
      TRYAGAIN: 'transient',
      READONLY: 'store',
      BUSY: 'store',
      NOSCRIPT: 'store',
      NOPERM: 'store',
    } satisfies Record<Word, string>);
  });

  it('is passing when the server may answer otherwise without anything being changed there', () => {
    const passing = Object.entries(TEXTS).filter(([, text]) => failure(wrap(text)).passing);
    expect(passing.map(([word]) => word)).toEqual(['READONLY', 'BUSY', 'MOVED', 'TRYAGAIN']);
  });

  it('is shown without what is around it, and of another type without the names that contain the key', () => {
    expect(failure(wrap(TEXTS.WRONGTYPE)).message).toBe(
      `Redis has something of another type at a name of the key: ${TEXTS.WRONGTYPE}`,
    );
    expect(failure(wrap(TEXTS.FENCE)).message).toBe(`Redis refused the command: ${TEXTS.FENCE}`);
  });

  it('is what the script says of it, when the script has refused it by itself', () => {
    expect(failure(wrap('ODD there is no number of them'))).toMatchObject({
      message: 'there is no number of them',
      keyOnly: true,
      claimOnly: true,
    });
    expect(failure(wrap('ODDLY so')).claimOnly).toBe(false);
  });

  it('is a loss in a renewal when another type has the name, and else a failure of that key', () => {
    expect(readExtend([wrap(TEXTS.WRONGTYPE), 5_000, wrap(TEXTS.NOPERM)], 3)).toMatchObject([
      { status: 'lost' },
      { status: 'held', validForMs: 5_000 },
      { status: 'failed', cause: { message: expect.stringContaining(TEXTS.NOPERM) as string } },
    ]);
  });

  it('is recognised in the answer of a batch', () => {
    const [granted, error] = readBatch(['1700000000000000', [wrap(TEXTS.READONLY)]], 2);
    expect(granted).toBe('1700000000000000');
    expect(isNoMaster(error)).toBe(true);
  });

  it.each(Object.entries(NO_MASTER))('makes the client look for the master again: %s', (_word, text) => {
    const error = wrap(text);
    for (const reply of [replyError(error), ['0', [error]], [5_000, error], ['gone', `error ${error}`]]) {
      expect(isNoMaster(reply), JSON.stringify(reply)).toBe(true);
    }
  });
});

describe('what only looks like an error of a script', () => {
  it.each([
    'ERR the user wrote WRONGTYPE',
    'ERR value is not an integer or out of range',
    'OOM command not allowed when used memory > maxmemory',
    'ERR @user READONLY',
  ])('%s: is none of them', (message) => {
    const error = replyError(message);
    expect([isNoMaster(error), isWrongType(error), isBusyScript(error), isNoScript(error)]).not.toContain(
      true,
    );
    expect(failure(message)).toMatchObject({ keyOnly: false, transient: false });
  });

  it('an error that is no reply is none', () => {
    expect(isNoMaster(new Error(TEXTS.READONLY))).toBe(false);
  });
});

describe('a failure of the store', () => {
  it.each([
    'LOADING Redis is loading the dataset in memory',
    'NOREPLICAS Not enough good replicas to write.',
    'MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no.',
    'CLUSTERDOWN The cluster is down',
    'ERR max number of clients reached',
  ])('is passing after the reply %s', (message) => {
    expect(failure(message).passing).toBe(true);
    expect(entryFailure(message).passing, 'also for one queue entry').toBe(true);
  });

  it.each([
    'NOAUTH Authentication required.',
    'WRONGPASS invalid username-password pair or user is disabled.',
    'MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.',
    "OOM command not allowed when used memory > 'maxmemory'.",
    'ERR unknown command',
  ])('is not passing after the reply %s', (message) => {
    expect(failure(message).passing).toBe(false);
    expect(entryFailure(message).passing).toBe(false);
    expect(mayReconnect(replyError(message))).toBe(false);
  });

  it('is passing when the connection ended, whether or not the command was sent', () => {
    const ended = ["Stream isn't writeable and enableOfflineQueue options is false", 'Connection is closed.'];
    const passing = ended.map((message) => {
      const failed = failureOf(new Error(message), session, (error) => error as Error);
      return [failed.outcome, failed.passing];
    });
    expect(passing).toEqual([
      ['not-executed', true],
      ['unknown', true],
    ]);
    expect(mayReconnect(new Error('connect ECONNREFUSED 127.0.0.1:6379'))).toBe(true);
  });
});

describe('what the client says of a command that it could not end', () => {
  it.each([
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
    "Stream isn't writeable and enableOfflineQueue options is false",
    'Command aborted due to connection close',
    'Connection is closed.',
  ])('is told as what happened, without settings of the client: %s', (text) => {
    const { message, stack } = cleanError(
      Object.assign(new Error(text), { name: 'MaxRetriesPerRequestError' }),
      [],
    );
    expect(message).toMatch(/^the connection (was closed|is closed|is down)/);
    expect(`${message} ${stack}`).not.toMatch(/max ?retries|offlineQueue|writeable/i);
  });
});

describe('the search for the master', () => {
  it('is not repeated within a second for a master that goes on without its replicas', () => {
    const runtime = new VirtualRuntime();
    const search = new MasterSearch(runtime);
    const refusals = [1, 2, 3].map(() => search.isDueTo(replyError(NO_MASTER.NOREPLICAS)));
    expect(refusals).toEqual([true, false, false]);
    expect(search.isDueTo(replyError(NO_MASTER.READONLY))).toBe(true);
    runtime.jump(999);
    expect(search.isDueTo(replyError(NO_MASTER.NOREPLICAS))).toBe(false);
    runtime.jump(1);
    expect(search.isDueTo(replyError(NO_MASTER.NOREPLICAS))).toBe(true);
  });
});
