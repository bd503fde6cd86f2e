import type fc from 'fast-check';
import type {
  AcquireReply,
  Claim,
  ExtendReply,
  LockKind,
  ReleaseReply,
} from '../../../lib/core/seam/claim.js';
import type { ReleaseOptions, StoreFailure, Watch } from '../../../lib/core/seam/lock-store.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import type { MemorySpace } from '../../../lib/stores/memory/memory-space.js';

/** What is on one line arrives in the order in which it was sent; when, the scheduler says. */
class Line {
  private readonly queue: (() => void)[] = [];

  constructor(
    private readonly scheduler: fc.Scheduler,
    private readonly name: string,
  ) {}

  send(what: string, arrive: () => void): void {
    this.queue.push(arrive);
    // Whichever of them is due: it is the oldest that arrives.
    void this.scheduler
      .schedule(Promise.resolve(), `${this.name}: ${what}`)
      .then(() => this.queue.shift()!());
  }
}

/** A memory store that is far away: requests, answers and hints are on their way for as long as the scheduler likes. */
export class SlowStore extends MemoryStore {
  private readonly requests: Line;
  private readonly answers: Line;
  private readonly hints: Line;

  constructor(space: MemorySpace, scheduler: fc.Scheduler, name: string) {
    super({ shared: space });
    this.requests = new Line(scheduler, `request of ${name}`);
    this.answers = new Line(scheduler, `answer to ${name}`);
    this.hints = new Line(scheduler, `hint to ${name}`);
  }

  override acquire(claim: Claim): Promise<AcquireReply> {
    return this.travel('acquire', () => super.acquire(claim));
  }

  override release(claim: Claim, how?: ReleaseOptions): Promise<ReleaseReply> {
    return this.travel('release', () => super.release(claim, how));
  }

  override extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    return this.travel('extend', () => super.extendMany(claims));
  }

  override watch(
    kind: LockKind,
    key: string,
    onHint: () => void,
    onFailure: (cause: StoreFailure) => void,
  ): Watch {
    let open = true;
    const hint = (): void => this.hints.send('hint', () => (open ? onHint() : undefined));
    const watch = super.watch(kind, key, hint, onFailure);
    return {
      get live() {
        return watch.live;
      },
      close: () => {
        open = false;
        watch.close();
      },
    };
  }

  private travel<T>(what: string, ask: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.requests.send(what, () => {
        const answer = ask();
        this.answers.send(what, () => void answer.then(resolve, reject));
      });
    });
  }
}
