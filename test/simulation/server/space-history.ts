import type { MemorySpace, MemorySpaceOptions } from '../../../lib/stores/memory/memory-space.js';

type NotifyGrant = MemorySpace['notifyGrant'];

/** A command as it was carried out. */
interface CarriedOut {
  readonly at: number;
  readonly wallMs: number;
  /** Whom it made known to the space, if it did. */
  readonly owner: string | undefined;
  readonly work: (space: MemorySpace) => unknown;
  /** Whether somebody listened to each message that it sent. */
  readonly received: boolean[];
}

/** The memory store's space, and how it came to be what it is: so it can be made again as it was at an earlier time. */
export class SpaceHistory {
  private current: MemorySpace;
  private log: CarriedOut[] = [];
  private underWay: CarriedOut | undefined;
  /** The command that is carried out once more; and how many messages it has sent. */
  private again: { readonly command: CarriedOut; notified: number } | undefined;

  constructor(
    private readonly Space: new (options: MemorySpaceOptions) => MemorySpace,
    private readonly wallMs: () => number,
    private readonly notify: NotifyGrant,
  ) {
    this.current = this.newSpace();
  }

  get space(): MemorySpace {
    return this.current;
  }

  carryOut<T>(at: number, work: (space: MemorySpace) => T, owner?: string): T {
    this.underWay = { at, wallMs: this.wallMs(), owner, work, received: [] };
    this.log.push(this.underWay);
    try {
      return work(this.current);
    } finally {
      this.underWay = undefined;
    }
  }

  /** Nothing is kept any more. */
  forget(): void {
    this.log = [];
    this.current = this.newSpace();
  }

  /** What is kept is what was kept then. Returns whom it may know. */
  goBackTo(at: number): string[] {
    const past = this.log.filter((command) => command.at <= at);
    this.forget();
    this.log = past;
    for (const command of past) {
      this.again = { command, notified: 0 };
      try {
        command.work(this.current);
      } catch {
        // It was refused then, too.
        continue;
      }
    }
    this.again = undefined;
    return past.flatMap(({ owner }) => owner ?? []);
  }

  private newSpace(): MemorySpace {
    const wallMs = (): number => this.again?.command.wallMs ?? this.wallMs();
    const space = new this.Space({ now: wallMs, wallClockMicros: () => wallMs() * 1_000 });
    space.notifyGrant = (...grant) => {
      const { again } = this;
      if (again) return again.command.received[again.notified++] ?? false;
      const received = this.notify(...grant);
      this.underWay?.received.push(received);
      return received;
    };
    return space;
  }
}
