import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ContractContext } from '../../support/stores/harness.js';

/** Long enough for a test. */
const TTL_MS = 60_000;

/** What processes tell each other through the store. */
export function describeProcessNotes(context: ContractContext): void {
  describe('a note of a process', () => {
    it('is read by others under its name until it is removed, with the text that was written last', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const [one, other] = [randomUUID(), randomUUID()];
      await a.processes.write(one, 'first', TTL_MS);
      await a.processes.write(one, 'ä "last" \n🔒', TTL_MS);
      await a.processes.write(other, 'other', TTL_MS);
      expect(await b.processes.read([other, randomUUID(), one])).toEqual([
        'other',
        undefined,
        'ä "last" \n🔒',
      ]);
      await a.processes.remove(one);
      await a.processes.remove(one);
      expect(await b.processes.read([one, other])).toEqual([undefined, 'other']);
      await a.processes.remove(other);
      expect(await b.processes.read([one, other])).toEqual([undefined, undefined]);
    });
  });

  describe('the place of a note', () => {
    it.each(['', '{}'])('is no lock, and no forced unlock of its name ends it %s', async (braces) => {
      const [a, b] = [await context.connect(), await context.connect()];
      const name = randomUUID();
      await a.processes.write(name, 'text', TTL_MS);
      const [before = '', after = ''] = braces;
      const finalKey = `nest_redis_lock:process:${before}${name}${after}`;
      // A store may refuse the name.
      expect(await b.forceUnlock(finalKey).catch(() => false)).toBe(false);
      expect(await b.processes.read([name])).toEqual(['text']);
      await a.processes.remove(name);
    });
  });

  describe('a message to a process', () => {
    it('reaches the process that listens on the name, and no other, until it stops', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const [name, other] = [randomUUID(), randomUUID()];
      const [received, elsewhere]: [string[], string[]] = [[], []];
      if (!a.processes.listen) return expect(a.processes.send).toBeUndefined();
      const stops = [
        a.processes.listen(name, (text) => received.push(text)),
        a.processes.listen(other, (text) => elsewhere.push(text)),
      ];
      const text = 'ä "question" \n🔒';
      await expect
        .poll(async () => {
          await b.processes.send!(name, text);
          return received[0];
        })
        .toBe(text);
      expect(elsewhere).toEqual([]);
      for (const stop of stops) stop();
      const count = received.length;
      await b.processes.send!(name, text);
      await b.ping();
      expect(received).toHaveLength(count);
    });
  });
}
