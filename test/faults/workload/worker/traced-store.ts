import type { KindStore, LockStore } from '../../../../lib/core/seam/lock-store.js';
import { processOfOwner } from '../../../support/owners.js';
import { RecordingStore } from '../../../checker/recording-store.js';
import type { Recorder } from './recorder.js';

/** Writes down what the core asks of the store, and what follows from it for those who hold leases. */
export class TracedStore extends RecordingStore {
  /** What the owners of this process's holds begin with; known after the first acquire. */
  instance = '';

  constructor(
    traced: LockStore,
    private readonly recorder: Recorder,
  ) {
    super(traced, recorder.process, (event) => recorder.write(event));
  }

  protected override recorded(kind: KindStore): KindStore {
    const recorded = super.recorded(kind);
    return {
      ...recorded,
      acquire: (claim) => {
        this.instance ||= processOfOwner(claim.owner);
        return recorded.acquire(claim);
      },
      extendMany: async (claims) => {
        try {
          return await recorded.extendMany(claims);
        } finally {
          // Once the core has taken the answer in, and still in the same turn of the event loop.
          process.nextTick(() => this.recorder.refresh());
        }
      },
    };
  }
}
