import { describe, expect, it } from 'vitest';
import { ReadyRequests } from '../../../lib/stores/load/ready-requests.js';
import { RequestQueue, type Urgency } from '../../../lib/stores/load/request-queue.js';

const CROWD = 2_000;

describe('requests that may be sent', () => {
  it.each<Urgency>(['renewal', 'other'])(
    'are not looked at for the sending of another one, also when thousands of the urgency "%s" wait',
    (urgency) => {
      let looks = 0;
      const queue = new RequestQueue();
      for (let n = 0; n < CROWD; n += 1) {
        queue.add({
          ...{ urgency, lines: [`line ${n}`], until: Infinity, rank: 0, blockers: 0 },
          get urgentFrom() {
            looks += 1;
            return undefined;
          },
        });
      }
      const order: string[] = [];
      for (let one = queue.next(0); one; one = queue.next(0)) {
        queue.delete(one);
        order.push(one.lines[0]!);
      }
      expect(looks).toBeLessThanOrEqual(4 * CROWD);
      expect(order).toEqual(Array.from({ length: CROWD }, (_, n) => `line ${n}`));
    },
  );

  it('come in the order of their urgency, and of their arrival, whatever is deleted and added meanwhile', () => {
    const ready = new ReadyRequests<string>();
    let known: { readonly one: string; readonly urgentFrom: number; readonly n: number }[] = [];
    let seed = 1;
    const random = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most;
    for (let n = 0; n < 4_000; n += 1) {
      const expected = known.toSorted((a, b) => a.urgentFrom - b.urgentFrom || a.n - b.n)[0]?.one;
      expect(ready.first).toBe(expected);
      const choice = random(3);
      if (choice === 0 || known.length === 0) {
        const urgentFrom = random(5);
        known.push({ one: `${n}`, urgentFrom, n });
        ready.add(`${n}`, urgentFrom);
      } else {
        const gone = choice === 1 && expected !== undefined ? expected : known[random(known.length)]!.one;
        expect(ready.delete(gone)).toBe(true);
        expect(ready.delete(gone)).toBe(false);
        known = known.filter(({ one }) => one !== gone);
      }
    }
  });
});
