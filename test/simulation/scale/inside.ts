import type { LockKind } from '../../../lib/core/kinds/kinds.js';

/** The callers that hold a lock, and how often there were more of them than may be. */
export class Inside {
  violations = 0;
  private readers = 0;
  private others = 0;

  /** @param most number of owners that a lock or its permits may have; readers do not count */
  constructor(private readonly most: number) {}

  enter(kind: LockKind): void {
    if (kind === 'read') this.readers += 1;
    else this.others += 1;
    const isTooMany = this.others > this.most || (this.others > 0 && this.readers > 0);
    if (isTooMany) this.violations += 1;
  }

  leave(kind: LockKind): void {
    if (kind === 'read') this.readers -= 1;
    else this.others -= 1;
  }
}
