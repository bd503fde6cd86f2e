import { expect, it } from 'vitest';
import { bestOf, type ClusterInfo } from '../../../lib/stores/redis/cluster/look-at.js';

const sight = (epoch: number, isOk = true): ClusterInfo => ({ ranges: [], canShard: true, epoch, isOk });

it.each([
  ['the one with the latest knowledge', [sight(3), sight(5), sight(4)], sight(5)],
  ['one that calls its cluster well, whatever another has heard of', [sight(9, false), sight(3)], sight(3)],
  ['the latest also of those that do not', [sight(2, false), sight(7, false)], sight(7, false)],
  ['none where there is none', [], undefined],
])('of what servers of a cluster see is believed %s', (_, sights, best) => {
  expect(bestOf(sights)).toEqual(best);
});

it('of what servers see that know the same is believed what was asked for last, which is given first', () => {
  const [later, earlier] = [sight(4), sight(4)];
  expect(bestOf([later, earlier])).toBe(later);
});
