import { expect, it } from 'vitest';
import { bestOf, type ClusterInfo } from '../../../lib/stores/redis/cluster/look-at.js';

const infoOf = (epoch: number, isOk = true): ClusterInfo => ({ ranges: [], canShard: true, epoch, isOk });

it.each([
  ['the one with the latest knowledge', [infoOf(3), infoOf(5), infoOf(4)], infoOf(5)],
  [
    'one that calls its cluster well, whatever another has heard of',
    [infoOf(9, false), infoOf(3)],
    infoOf(3),
  ],
  ['the latest also of those that do not', [infoOf(2, false), infoOf(7, false)], infoOf(7, false)],
  ['none where there is none', [], undefined],
])('of what servers of a cluster see is believed %s', (_, infos, best) => {
  expect(bestOf(infos)).toEqual(best);
});

it('of what servers see that know the same is believed what was asked for last, which is given first', () => {
  const [later, earlier] = [infoOf(4), infoOf(4)];
  expect(bestOf([later, earlier])).toBe(later);
});
