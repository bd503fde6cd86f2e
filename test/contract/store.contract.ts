import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';
import type {
  ContractContext,
  FullStore,
  MakeHarness,
  StoreHarness,
  StoreTraits,
} from '../support/stores/harness.js';
import { KINDS, type LockKind } from '../../lib/core/kinds/kinds.js';
import { KIND_CONTRACTS } from './kinds/index.js';
import { describeLatches } from './objects/latch.contract.js';
import { describeSemaphores } from './objects/semaphore.contract.js';
import { describeHostileKeys } from './parts/hostile-keys.js';
import { describeLifecycle } from './parts/lifecycle.js';
import { describeListing } from './parts/listing.js';
import { describeProcessNotes } from './parts/process-notes.js';
import { describeSessionKind } from './parts/session-kind.js';
import { describeWatching } from './parts/watching.js';

const ALL_KINDS = Object.keys(KINDS) as readonly LockKind[];

/**
 * Everything the core relies on at the seam, as tests. Each store has to pass it unchanged; what only one store
 * promises is tested beside it. Returns the pairs that are under contract, as `kind on store`.
 */
export function describeStoreContract(
  name: string,
  makeHarness: MakeHarness,
  { kinds = ALL_KINDS, hasObjects = true, ...traits }: StoreTraits = {},
): readonly string[] {
  describe(`${name} keeps the promises of the seam:`, () => {
    const opened: FullStore[] = [];
    let current: StoreHarness | undefined;
    const context: ContractContext = {
      ...{
        hasWaitQueue: true,
        severalNodes: false,
        polled: false,
        seesOtherKinds: false,
        hasCounters: true,
        takesNul: true,
        hasSessions: false,
      },
      ...traits,
      get harness() {
        if (!current) throw new Error('the harness is there only while tests run');
        return current;
      },
      connect: async () => {
        const store = await context.harness.connect();
        opened.push(store);
        return store;
      },
    };

    beforeAll(async () => {
      current = await makeHarness();
    });

    afterEach(async () => {
      await Promise.all(opened.splice(0).map((store) => store.close()));
      // The server hears of a closed connection a moment after the client has let go of it.
      await expect
        .poll(() => context.harness.leftovers(), { timeout: 5_000 })
        .toMatchObject({ watches: 0, grantSubscriptions: 0 });
    });

    afterAll(async () => {
      await current?.cleanup();
    });

    for (const kind of kinds) {
      const { under, describeKind } = KIND_CONTRACTS[kind];
      describe(`locks of the kind ${kind}:`, () => {
        if (context.hasSessions) describeSessionKind(context, under);
        else {
          describeKind(context, makeHarness);
          describeWatching(context, under);
        }
        describeHostileKeys(context, under);
        describeLifecycle(context, under, makeHarness);
      });
    }

    describeProcessNotes(context);
    describeListing(
      context,
      kinds.map((kind) => KIND_CONTRACTS[kind].under),
    );

    if (!hasObjects) return;
    describeSemaphores(context);
    describeLatches(context);
  });
  return kinds.map((kind) => `${kind} on ${name}`);
}
