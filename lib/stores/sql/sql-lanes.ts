import type { Claim } from '../../core/seam/claim.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import { Lane, type LaneHost } from './lane.js';
import type { SqlDialect } from './sql-dialect.js';
import { SqlFailure, type Attempt, type Statement } from './sql-session.js';

/** A claim, and where it stood in the list. */
interface Placed<C> {
  readonly claim: C;
  readonly at: number;
}

/** The connections of a store: several lanes, of which each key has one, and one more that only reads. */
export class SqlLanes {
  private readonly lanes: readonly Lane[];
  private readonly looking: Lane;

  constructor(
    private readonly dialect: SqlDialect,
    { runtime, timeoutMs }: Pick<LaneHost, 'runtime' | 'timeoutMs'>,
    count: number,
  ) {
    const host = { name: dialect.name, runtime, timeoutMs, connect: () => dialect.connect() };
    this.lanes = Array.from({ length: count }, () => new Lane(host));
    this.looking = new Lane(host);
  }

  /** Sends a statement about one key, behind all earlier ones about this key. */
  run<T>(finalKey: string, statement: Statement<T> | Attempt<T>): Promise<T> {
    return this.lanes[this.laneOf(finalKey)]!.run(statement);
  }

  /** Sends a statement that changes no hold, beside all others. */
  look<T>(statement: Statement<T>): Promise<T> {
    return this.looking.run(statement);
  }

  /** Parts claims by lane, with at most `most` in each part. */
  parted<C extends Claim>(claims: readonly C[], most: number): readonly (readonly Placed<C>[])[] {
    const lanes = new Map<number, Placed<C>[][]>();
    claims.forEach((claim, at) => {
      const lane = this.laneOf(claim.finalKey);
      const parts = lanes.get(lane) ?? [];
      lanes.set(lane, parts);
      const last = parts.at(-1);
      if (last && last.length < most) last.push({ claim, at });
      else parts.push([{ claim, at }]);
    });
    return [...lanes.values()].flat();
  }

  /**
   * Resolves when nothing of a failed statement comes any more.
   *
   * @throws {SqlFailure} `unknown`, when that is not certain yet
   */
  async settle(failure: StoreFailure): Promise<void> {
    const failed = failure instanceof SqlFailure ? failure.session : undefined;
    if (!failed) return;
    failed.destroy();
    if (await this.dialect.settle(failed, (statement) => this.look(statement))) return;
    throw new SqlFailure(`${this.dialect.name} still has the connection`, 'unknown', { passing: true });
  }

  async close(): Promise<void> {
    await Promise.all([...this.lanes, this.looking].map((lane) => lane.close()));
  }

  private laneOf(finalKey: string): number {
    let hash = 0;
    for (let i = 0; i < finalKey.length; i++) hash = (Math.imul(hash, 31) + finalKey.charCodeAt(i)) | 0;
    return (hash >>> 0) % this.lanes.length;
  }
}
