import type { AcquireReply, Claim, ExtendReply } from '../../../../lib/core/seam/claim.js';
import type { LockStore } from '../../../../lib/core/seam/lock-store.js';
import { RecordingStore } from '../../../checker/recording-store.js';
import type { Recorder } from './recorder.js';

/** Writes down what the core asks of the store, and what follows from it for those who hold leases. */
export class TracedStore extends RecordingStore {
  /** What the owners of this process's holds begin with; known after the first acquire. */
  instance = '';

  constructor(
    store: LockStore,
    private readonly recorder: Recorder,
  ) {
    super(store, recorder.process, (event) => recorder.write(event));
  }

  override acquire(claim: Claim): Promise<AcquireReply> {
    this.instance ||= claim.owner.slice(0, claim.owner.lastIndexOf(':'));
    return super.acquire(claim);
  }

  override async extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    try {
      return await super.extendMany(claims);
    } finally {
      // Once the core has taken the answer in.
      setImmediate(() => this.recorder.refresh());
    }
  }
}
