import { describe, expect, it } from 'vitest';
import { LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import type { Claim } from '../../../lib/core/seam/claim.js';
import {
  expectGranted,
  expectTaken,
  takeWhenFree,
  type ContractContext,
  type FullStore,
} from '../../support/stores/harness.js';
import type { KindUnderContract } from '../kinds/kind-under-contract.js';

const NUL = 'NUL and control characters';

/** Names that have broken quoting, matching or storage somewhere. All of them are different keys. */
export const HOSTILE_KEYS: Readonly<Record<string, string>> = {
  'spaces at both ends': '  lock: two  words ',
  'a trailing space less': '  lock: two  words',
  'line breaks': 'lock:a\r\nb\n',
  'a protocol line': 'lock:\r\n*1\r\n$8\r\nFLUSHALL\r\n',
  [NUL]: 'lock:\u0000\u0007\u001b[31m',
  'single and double quotes': `lock:'"\`"'`,
  'a Lua string end': `lock:']]..redis.call('flushall')--`,
  'template syntax': 'lock:${process.exit(1)}:<<id>>:#{x}',
  'percent escapes': 'lock:%s%d%%%00',
  backslashes: 'lock:\\n\\u0000\\',
  'glob characters': 'lock:*?[a-z]',
  'accents composed': 'lock:é'.normalize('NFC'),
  'accents decomposed': 'lock:é'.normalize('NFD'),
  'emoji and right-to-left': 'lock:🔒\u200f\u202eabc\u200d',
  'names of Object.prototype': '__proto__',
  'the constructor': 'constructor',
  'a number': '0',
  'a slot tag': 'lock:{tag}:a',
  'the same slot tag': 'lock:{tag}:b',
  '10,000 characters': `lock:${'x'.repeat(10_000)}`,
  'the same, one less': `lock:${'x'.repeat(9_999)}`,
};

/** What one store cannot keep, none keeps: else a test on one says nothing about an app on another. */
const REFUSED_KEYS = [
  'lock:{}', 'lock:{', 'lock:}', 'lock:}{', 'lock:{}x{y}', 'nest_redis_lock:fence:{1}', 'nest_redis_lock:',
]; // prettier-ignore
/** Odd, but fine. */
const ODD_KEYS = ['lock:{{x}}', 'lock:{x}}', '}lock:{x}', 'lock:nest_redis_lock:'];

/** Keys that no app would choose. */
export function describeHostileKeys(context: ContractContext, kind: KindUnderContract): void {
  // Of a kind with one owner it is not asked whether others wait.
  const released = kind.ordered ? { wasHeld: true } : { wasHeld: true, othersWaiting: true };

  const { [NUL]: withNul, ...others } = HOSTILE_KEYS;
  const hostile = context.takesNul ? HOSTILE_KEYS : others;
  const refused = context.takesNul ? REFUSED_KEYS : [...REFUSED_KEYS, withNul!];

  /** The names are the same for each kind, and permits that are given back leave a counter for a while. */
  const connectAll = async (keys: readonly string[]) => {
    const stores = [await context.connect(), await context.connect()] as const;
    for (const key of keys) await stores[0].forceUnlock(key);
    return stores;
  };

  /** A caller that the holder keeps out has its turn when the holder releases. */
  const passesOn = async (a: FullStore, b: FullStore, claim: Claim): Promise<void> => {
    if (context.hasSessions) {
      const rival = kind.rivalFor(claim.finalKey);
      const turn = takeWhenFree(b, rival);
      expect((await kind.of(a).release(claim)).wasHeld).toBe(true);
      expectGranted(await turn);
      await b.kinds[rival.kind].release(rival as never);
      return;
    }
    const wakeUps = await kind.live(b, claim.finalKey);
    const seen = wakeUps.count;
    expect(await kind.of(a).release(claim)).toMatchObject(released);
    await wakeUps.next(seen);
  };

  describe('hostile keys', () => {
    it('are all different keys: each has its own owner', async () => {
      const [a, b] = await connectAll(Object.values(hostile));
      const claims = Object.values(hostile).map((key) => kind.claimFor(key));
      for (const claim of claims) {
        a.checkKey?.(claim.finalKey);
        expectGranted(await kind.of(a).acquire(claim));
      }
      for (const { finalKey: key, owner } of claims)
        expect((await b.inspect(key))?.holders[0]?.owner).toBe(owner);
      expect((await kind.of(a).extendMany(claims)).map(({ status }) => status)).toEqual(
        claims.map(() => 'held'),
      );
      for (const claim of claims) expect((await kind.of(a).release(claim)).wasHeld).toBe(true);
    });

    it.each(Object.entries(hostile))('%s: taken, watched, released, woken', async (_, key) => {
      const [a, b] = await connectAll([key]);
      const claim = kind.claimFor(key);
      expectGranted(await kind.of(a).acquire(claim));
      expectTaken(await kind.refused(b, key));
      await passesOn(a, b, claim);
      expect(await b.inspect(key)).toBeNull();
    });

    it.each(refused)('%j is refused with LockKeyError', async (key) => {
      const store = await context.connect();
      expect(() => store.checkKey?.(key)).toThrow(LockKeyError);
      // The core adds the key as people may see it: see the option `redactKey`.
      expect(() => store.checkKey?.(key)).not.toThrow(`"${key}"`);
    });

    it.each(ODD_KEYS)('%j works, in every store', async (key) => {
      const [a, b] = await connectAll([key]);
      a.checkKey?.(key);
      const claim = kind.claimFor(key);
      expectGranted(await kind.of(a).acquire(claim));
      expectTaken(await kind.refused(b, key));
      await passesOn(a, b, claim);
    });
  });
}
