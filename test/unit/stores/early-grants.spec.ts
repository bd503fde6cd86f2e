import { describe, expect, it } from 'vitest';
import { EarlyGrants } from '../../../lib/stores/redis/kinds/exclusive/early-grants.js';

const make = () => {
  const unclaimed: string[] = [];
  return { unclaimed, grants: new EarlyGrants<string>((message) => unclaimed.push(message)) };
};

describe('a grant that arrives before the reply of its request', () => {
  it('is claimed by that request, whichever request ends first', () => {
    const { grants, unclaimed } = make();
    const [one, two] = [grants.began(), grants.began()];
    grants.add('p:2', 'granted');
    const three = grants.began();
    expect(grants.ended(one, 'p:1')).toBeUndefined();
    expect(grants.ended(three, 'p:3')).toBeUndefined();
    expect(grants.ended(two, 'p:2')).toBe('granted');
    expect(unclaimed).toEqual([]);
  });

  it('is claimed once, also among other early grants', () => {
    const { grants, unclaimed } = make();
    const [one, two] = [grants.began(), grants.began()];
    grants.add('p:1', 'first');
    grants.add('p:2', 'second');
    expect(grants.ended(two, 'p:2')).toBe('second');
    expect(grants.ended(one, 'p:1')).toBe('first');
    expect(grants.ended(grants.began(), 'p:1')).toBeUndefined();
    expect(unclaimed).toEqual([]);
  });
});

describe('a grant of an owner without a request', () => {
  it('is unclaimed at once when no request is in progress', () => {
    const { grants, unclaimed } = make();
    grants.add('p:1', 'granted');
    expect(unclaimed).toEqual(['granted']);
  });

  it('is unclaimed when the requests that were in progress have ended, however many follow', () => {
    const { grants, unclaimed } = make();
    const before = [grants.began(), grants.began()];
    grants.add('p:9', 'granted');
    const later = grants.began();
    grants.ended(before[0]!, 'p:1');
    expect(unclaimed).toEqual([]);
    grants.ended(before[1]!, 'p:2');
    expect(unclaimed).toEqual(['granted']);
    grants.ended(later, 'p:3');
    expect(unclaimed).toEqual(['granted']);
  });
});
