import { describe, expect, it } from 'vitest';
import { readGrantMessage } from '../../../lib/stores/redis/kinds/exclusive/grant-message.js';

const grant = {
  holdName: 'lock:a b\nc',
  owner: 'p:1',
  token: 7,
  tokens: 2,
  provisionalLeaseMs: 10_000,
  entriesLeft: 3,
};

describe('a grant message', () => {
  it('has the name of the hold last, which may contain anything', () => {
    expect(readGrantMessage('grant 1 p:1 7 2 10000 3\nlock:a b\nc')).toEqual(grant);
  });

  it('of a later version is read, whatever words it has after those of this version', () => {
    expect(readGrantMessage('grant 2 p:1 7 2 10000 3 later words\nlock:a b\nc')).toEqual(grant);
  });

  it.each([
    ['another word', 'granted 1 p:1 7 2 10000 3\nlock:a'],
    ['no version', 'grant p:1 7 2 10000 3\nlock:a'],
    ['a word less', 'grant 1 p:1 7 2 10000\nlock:a'],
    ['no hold', 'grant 1 p:1 7 2 10000 3'],
    ['a token that no number can hold', 'grant 1 p:1 9007199254740993 2 10000 3\nlock:a'],
  ])('with %s is ignored', (_, text) => {
    expect(readGrantMessage(text)).toBeUndefined();
  });
});
