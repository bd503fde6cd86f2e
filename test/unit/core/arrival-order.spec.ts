import { describe, expect, it } from 'vitest';
import { ArrivalOrder } from '../../../lib/core/wait/arrival-order.js';

/** Numbers from 0 to 1 that look random, and are the same each time. */
const numbers = (): (() => number) => {
  let state = 1;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
};

/** Returns an order, and a function that returns how often its tree was read or filled so far. */
const counted = <T>(): { order: ArrivalOrder<T>; steps: () => number } => {
  const order = new ArrivalOrder<T>();
  let steps = 0;
  let tree: Int32Array | undefined;
  Object.defineProperty(order, 'tree', {
    get: () => tree,
    set: (made: Int32Array | undefined) => {
      steps += made?.length ?? 0;
      tree =
        made &&
        new Proxy(made, {
          get: (of, name) => {
            if (name !== 'length') steps++;
            return Reflect.get(of, name) as unknown;
          },
        });
    },
  });
  return { order, steps: () => steps };
};

describe('the order of arrival', () => {
  it('returns how many earlier members are still there, while others come and go', () => {
    const random = numbers();
    const oneOf = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
    const order = new ArrivalOrder<object>();
    let present: object[] = [];
    for (let i = 0; i < 3_000; i++) {
      if (present.length === 0 || random() < 0.55) {
        const member = {};
        order.add(member);
        present.push(member);
      } else {
        const leaver = oneOf(present);
        order.delete(leaver);
        present = present.filter((one) => one !== leaver);
      }
      if (present.length === 0 || random() < 0.7) continue;
      const requested = oneOf(present);
      expect(order.aheadOf(requested)).toBe(present.indexOf(requested));
      expect([order.size, order.first]).toEqual([present.length, present[0]]);
    }
    expect(order.all).toEqual(present);
  });

  it('counts no member ahead of a member that has left, and a second removal changes nothing', () => {
    const order = new ArrivalOrder<object>();
    const [first, second, third] = [{}, {}, {}];
    for (const one of [first, second, third]) order.add(one);
    expect(order.aheadOf(third)).toBe(2);
    order.delete(first);
    order.delete(first);
    expect([order.aheadOf(first), order.aheadOf(third)]).toEqual([0, 1]);
  });

  it('makes a few steps for each member of a crowd in which everybody asks and leaves', () => {
    const { order, steps } = counted<number>();
    const crowd = 20_000;
    for (let i = 0; i < crowd; i++) order.add(i);
    let wrong = 0;
    for (let i = crowd - 1; i >= 0; i--) {
      if (order.aheadOf(i) !== i) wrong += 1;
      order.delete(i);
    }
    expect(wrong).toBe(0);
    expect(steps()).toBeGreaterThan(crowd);
    expect(steps() / crowd).toBeLessThan(2 * Math.log2(2 * crowd) + 4);
  });

  it('makes no step for a crowd that is never asked', () => {
    const { order, steps } = counted<number>();
    for (let i = 0; i < 1_000; i++) order.add(i);
    for (let i = 0; i < 1_000; i++) order.delete(i);
    expect(steps()).toBe(0);
  });
});
