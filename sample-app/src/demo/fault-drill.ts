import { setTimeout as sleep } from 'node:timers/promises';
import type { Part } from './parts.js';

const POLL_MS = 20;
const STALE_WRITE_TIMEOUT_MS = 1_000;
const MAX_STOPS = 5;

/** What the drill needs to know of the world. */
export interface DrillWitness {
  /** The owner of the lock's hold in Redis; undefined when nobody holds it. */
  owner(key: string): Promise<string | undefined>;
  /** How many writes the database has refused so far. */
  staleWritesRefused(): Promise<number>;
}

/** An instance that was stopped while it held the lock. */
interface StoppedHolder {
  readonly instance: Part;
  readonly key: string;
  readonly owner: string;
}

/**
 * Does to instances what machines do to them, and only while they hold the lock: an instance tells that it got the
 * lock, is stopped at once, and Redis is asked whether it still holds it. If not, it goes on and the next is tried.
 */
export class FaultDrill {
  killed = 0;
  stopped = 0;

  constructor(
    private readonly instances: readonly Part[],
    private readonly witness: DrillWitness,
    private readonly signal: AbortSignal,
  ) {}

  /** Kills an instance that holds the lock. */
  async kill(): Promise<void> {
    const { instance } = await this.stopHolder();
    instance.kill('SIGKILL');
    this.killed++;
  }

  /**
   * Stops an instance that holds the lock until another one has taken it over, which is after the lease; then lets
   * it go on, to find out what becomes of the write it was about to make. Where it is stopped is left to chance, and
   * not everywhere a write follows: repeated until the database has refused one.
   */
  async stop(): Promise<void> {
    for (let stops = 0; stops < MAX_STOPS; stops++) {
      const holder = await this.stopHolder();
      try {
        await this.until(async () => {
          const owner = await this.witness.owner(holder.key);
          return owner !== undefined && !owner.startsWith(holder.owner);
        });
      } finally {
        holder.instance.kill('SIGCONT');
      }
      this.stopped++;
      if (await this.staleWriteIsRefused()) return;
    }
  }

  /** An instance that holds the lock, stopped. */
  private async stopHolder(): Promise<StoppedHolder> {
    for (;;) {
      const holder = await this.nextHolder();
      // Asked twice: a release that was under way when the instance stopped has arrived at the second time.
      if ((await this.holds(holder)) && (await this.holds(holder))) return holder;
      holder.instance.kill('SIGCONT');
    }
  }

  private async holds({ key, owner }: StoppedHolder): Promise<boolean> {
    return (await this.witness.owner(key))?.startsWith(owner) ?? false;
  }

  /** Stops the next instance that says it has got the lock. */
  private nextHolder(): Promise<StoppedHolder> {
    return new Promise((resolve, reject) => {
      const offs = this.instances
        .filter((instance) => instance.alive)
        .map((instance) =>
          instance.onMessage((message) => {
            if (message.type !== 'acquired') return;
            instance.kill('SIGSTOP');
            done();
            resolve({ instance, key: message.key, owner: message.owner });
          }),
        );
      const onAbort = () => {
        done();
        reject(this.signal.reason as Error);
      };
      const done = () => {
        this.signal.removeEventListener('abort', onAbort);
        for (const off of offs) off();
      };
      this.signal.addEventListener('abort', onAbort);
      if (this.signal.aborted) onAbort();
    });
  }

  private async staleWriteIsRefused(): Promise<boolean> {
    const deadline = performance.now() + STALE_WRITE_TIMEOUT_MS;
    let refused = 0;
    await this.until(async () => {
      refused = await this.witness.staleWritesRefused();
      return refused > 0 || performance.now() > deadline;
    });
    return refused > 0;
  }

  private async until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await sleep(POLL_MS, undefined, { signal: this.signal });
  }
}
