import type { RedisLike } from './redis-client.js';

/** The socket under a client; ioredis does not declare it, and a Cluster has none. */
interface WithStream {
  readonly stream?: CorkableStream | null;
}

interface CorkableStream {
  cork(): void;
  uncork(): void;
}

/** How many commands one write carries at most: Redis works on the first while the next are being written. */
const MOST = 16;

/**
 * Puts the commands of one tick into few writes. Replies that come in together set off their next commands in the
 * same tick; as a write each they would cost more than all the rest of a lock. Nothing is held back for longer.
 */
export class WriteBatch {
  private stream: CorkableStream | undefined;
  private size = 0;

  constructor(private readonly client: RedisLike) {}

  /** Call before each command. One that is `alone`, with no other under way, leaves at once. */
  begin(alone: boolean): void {
    if (this.stream) {
      if (++this.size > MOST) this.flush();
    } else if (!alone) this.open();
  }

  private open(): void {
    const { stream } = this.client as WithStream;
    if (!stream) return;
    this.stream = stream;
    this.size = 1;
    stream.cork();
    process.nextTick(() => {
      this.stream = undefined;
      stream.uncork();
    });
  }

  private flush(): void {
    this.stream?.uncork();
    this.stream?.cork();
    this.size = 1;
  }
}
