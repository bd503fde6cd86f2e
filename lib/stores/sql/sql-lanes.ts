import type { Claim } from '../../core/seam/claim.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import { Load } from '../load/load.js';
import type { SendTerms } from '../load/unsent-requests.js';
import { Lane, type Company, type LaneHost, type MakeStatement } from './lane.js';
import type { RunStatement, SqlDialect } from './sql-dialect.js';
import { SqlFailure, type SqlSession, type Statement } from './sql.js';

/** A claim, and where it stood in the list. */
interface Placed<C> {
  readonly claim: C;
  readonly at: number;
}

/**
 * The connections of a store: several lanes, of which each key has one. One more lane only reads. Another one ends failed
 * sessions; it is opened when it is needed.
 */
export class SqlLanes {
  private readonly lanes: readonly Lane[];
  private readonly looking: Lane;
  private readonly ending: Lane;
  private readonly apartLanes = new Set<Lane>();
  private readonly host: LaneHost;
  /** Whether nothing comes any more of a failed session. */
  private readonly settled = new WeakMap<SqlSession, Promise<boolean>>();

  constructor(
    private readonly dialect: SqlDialect,
    { runtime, timeoutMs }: Pick<LaneHost, 'runtime' | 'timeoutMs'>,
    count: number,
    /** What each connection waits for. */
    ready?: () => Promise<void>,
  ) {
    const load = new Load();
    const connect = async (): Promise<SqlSession> => {
      await ready?.();
      return dialect.connect();
    };
    const host: LaneHost = {
      ...{ name: dialect.name, runtime, timeoutMs, load, connect },
      ...(dialect.probe && { probe: (finalKey) => dialect.probe!(finalKey) }),
    };
    this.host = host;
    this.lanes = Array.from({ length: count }, () => new Lane(host));
    this.looking = new Lane(host);
    this.ending = new Lane(host);
  }

  /** Sends a statement on the connection of a key. */
  run<T, C>(finalKey: string, make: MakeStatement<T>, terms: SendTerms, company?: Company<C, T>): Promise<T> {
    return this.laneOf(finalKey).run(make, terms, company);
  }

  /** Sends a statement about a whole key, behind all earlier ones about it. */
  about<T>(finalKey: string, statement: Statement<T>, terms: SendTerms = {}): Promise<T> {
    return this.run(finalKey, () => statement, { lines: [finalKey], ...terms });
  }

  /** Returns the lane of a key. */
  laneOf(finalKey: string): Lane {
    return this.lanes[this.numberOf(finalKey)]!;
  }

  /** Sends a statement that changes no hold, beside all others. */
  look<T>(statement: Statement<T>): Promise<T> {
    return this.looking.run(() => statement);
  }

  /** Sends statements on a connection of their own, which does not wait for `ready`. */
  async apart<T>(use: (run: RunStatement) => Promise<T>): Promise<T> {
    const lane = new Lane({ ...this.host, connect: () => this.dialect.connect() });
    this.apartLanes.add(lane);
    try {
      return await use((statement) => lane.run(() => statement));
    } finally {
      this.apartLanes.delete(lane);
      lane.destroy();
    }
  }

  /** Parts claims by lane, with as many in each part as one statement should have. */
  parted<C extends Claim>(claims: readonly C[]): readonly (readonly Placed<C>[])[] {
    const lanes = new Map<number, Placed<C>[][]>();
    claims.forEach((claim, at) => {
      const lane = this.numberOf(claim.finalKey);
      const parts = lanes.get(lane) ?? [];
      lanes.set(lane, parts);
      const last = parts.at(-1);
      if (last && last.length < this.lanes[lane]!.maxRows) last.push({ claim, at });
      else parts.push([{ claim, at }]);
    });
    return [...lanes.values()].flat();
  }

  /**
   * Resolves when nothing of a failed statement comes any more. Undos of one session share the requests for that.
   *
   * @throws {SqlFailure} `unknown`, when that is not certain yet
   */
  async settle(failure: StoreFailure): Promise<void> {
    const failed = failure instanceof SqlFailure ? failure.session : undefined;
    if (!failed) return;
    if (await this.settleOnce(failed)) return;
    throw new SqlFailure(`${this.dialect.name} still has the connection`, 'unknown', { passing: true });
  }

  private settleOnce(failed: SqlSession): Promise<boolean> {
    const { settled } = this;
    const known = settled.get(failed);
    if (known) return known;
    failed.destroy();
    const settling = this.dialect.settle(failed, (statement) => this.ending.run(() => statement));
    settled.set(failed, settling);
    const again = (isSettled: boolean): void => void (isSettled || settled.delete(failed));
    settling.then(again, () => again(false));
    return settling;
  }

  async close(): Promise<void> {
    await Promise.all(
      [...this.lanes, this.looking, this.ending, ...this.apartLanes].map((lane) => lane.close()),
    );
  }

  private numberOf(finalKey: string): number {
    let hash = 0;
    for (let i = 0; i < finalKey.length; i++) hash = (Math.imul(hash, 31) + finalKey.charCodeAt(i)) | 0;
    return (hash >>> 0) % this.lanes.length;
  }
}
