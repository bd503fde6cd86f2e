import { describeExtending } from '../parts/extending.js';
import { describeLeases } from '../parts/leases.js';
import { describeHolds } from '../parts/holds.js';
import { describeWaitQueue } from '../parts/wait-queue.js';
import { describeTokens } from '../parts/tokens.js';
import { EXCLUSIVE, type KindContract } from './kind-under-contract.js';

/** What the exclusive lock promises beside what all kinds do. */
export const exclusiveContract: KindContract = {
  under: EXCLUSIVE,
  describeKind: (context) => {
    describeHolds(context);
    describeLeases(context);
    describeTokens(context);
    describeExtending(context);
    if (context.hasWaitQueue) describeWaitQueue(context);
  },
};
