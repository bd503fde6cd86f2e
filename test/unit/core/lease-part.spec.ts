import { describe, expect, it } from 'vitest';
import { Hold } from '../../../lib/core/lease/hold.js';
import { LeasePart } from '../../../lib/core/lease/lease-part.js';
import { claimOn, queueOn } from '../../support/core/queue-on.js';
import { ScriptedStore } from '../../support/core/scripted-store.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const newHold = (): Hold => {
  const { endListener } = queueOn(new ScriptedStore(), new VirtualRuntime());
  const granted = {
    token: 1,
    grantedAt: 0,
    sentAt: 0,
    validForMs: 30_000,
    lost: undefined,
    grantedBy: undefined,
  };
  return new Hold({ key: 'k', label: 'test' }, endListener, claimOn('k'), 30_000, granted);
};

describe('a part that is nested in others', () => {
  it('is inside each of them, and that is known without a look at those between them', () => {
    let visits = 0;
    const hold = newHold();
    const parts = [new LeasePart('k', 'k', hold, undefined, 'test')];
    for (let depth = 1; depth < 3_000; depth++) {
      const outer = parts.at(-1)!;
      const entry = {
        get part() {
          visits += 1;
          return outer;
        },
        leave: () => undefined,
      };
      parts.push(new LeasePart('k', 'k', hold, entry, 'test'));
    }
    const made = visits;
    const innermost = parts.at(-1)!;
    expect(parts.filter((part) => innermost.isInside(part))).toHaveLength(2_999);
    expect(parts.some((part) => part.isInside(innermost))).toBe(false);
    expect([made, visits - made]).toEqual([2_999, 0]);
  });

  it('is in no part of another hold', () => {
    const outer = new LeasePart('k', 'k', newHold(), undefined, 'test');
    const nested = new LeasePart('k', 'k', outer.hold, { part: outer, leave: () => undefined }, 'test');
    expect(nested.isInside(new LeasePart('k', 'k', newHold(), undefined, 'test'))).toBe(false);
  });
});
