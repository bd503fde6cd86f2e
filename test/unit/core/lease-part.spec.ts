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
  it('is inside each of them, however deep', () => {
    const hold = newHold();
    const parts = [new LeasePart('k', 'k', hold, undefined, 'test')];
    for (let depth = 1; depth < 3_000; depth++) {
      parts.push(new LeasePart('k', 'k', hold, parts.at(-1), 'test'));
    }
    const innermost = parts.at(-1)!;
    expect(parts.filter((part) => innermost.isInside(part))).toHaveLength(2_999);
    expect(parts.some((part) => part.isInside(innermost))).toBe(false);
  });

  it('is not inside a part that shares its hold, such as that of another reader', () => {
    const hold = newHold();
    const [one, other] = [1, 2].map(() => new LeasePart('k', 'k', hold, undefined, 'test'));
    expect(new LeasePart('k', 'k', hold, one, 'test').isInside(other!)).toBe(false);
  });

  it('is in no part of another hold', () => {
    const outer = new LeasePart('k', 'k', newHold(), undefined, 'test');
    const nested = new LeasePart('k', 'k', outer.hold, outer, 'test');
    expect(nested.isInside(new LeasePart('k', 'k', newHold(), undefined, 'test'))).toBe(false);
  });
});
