import { createTestingLocks, type LossReport } from 'nest-redis-lock/testing';
import { fenceTransaction } from 'nest-redis-lock/fencing';
import type { Lease } from 'nest-redis-lock';

export type Reply = { readonly command: string; readonly rows: readonly { readonly name: string }[] };

/** A connection with the methods and marks of a client of `pg`. It notes its statements, and replies as it is told. */
export class FakeClient {
  readonly sent: string[] = [];
  replies: Record<string, () => Promise<Reply>> = {};
  key = '';
  processID = 1;
  connection = {};
  async query(query: unknown, callback?: unknown): Promise<Reply> {
    const text = typeof query === 'string' ? query : String((query as { text: string }).text);
    this.sent.push(text);
    if (typeof callback === 'function') (callback as (error: null) => void)(null);
    const reply = this.replies[text];
    if (reply) return reply();
    return { command: text.split(' ')[0]!.toUpperCase(), rows: [{ name: this.key }] };
  }
  release(): void {
    this.sent.push('release');
  }
}

export const WRITE = 'UPDATE stock SET remaining = 1';

/** Fences by a query function, which sends its statements on the client. Its database accepts every fence. */
export const fenceOn = (client: FakeClient, lease: Lease): Promise<void> =>
  fenceTransaction(
    async (sql, parameters) => {
      client.key = String(parameters[0]);
      return [...(await client.query(sql)).rows];
    },
    lease,
    { dialect: 'postgres' },
  );

export const setup = () => {
  const locks = createTestingLocks('memory', { maxWaitMs: 1_000 });
  const client = new FakeClient();
  type Options = Partial<Parameters<typeof locks.testing.loseEverywhere>[1]>;
  const lose = (scenario: () => unknown, options: Options = {}): Promise<LossReport> =>
    locks.testing.loseEverywhere(scenario, { databases: [client], ...options });
  const locked = (work: (lease: Lease) => unknown, options?: Options) =>
    lose(() => locks.withLock('tea', work), options);
  /** Runs statements under the lock. Returns the statements that are reported. */
  const reported = async (...statements: string[]): Promise<string[]> => {
    const report = await locked(async () => {
      for (const sql of statements) await client.query(sql).catch(() => undefined);
    });
    return [...new Set(report.unfenced.map(({ what }) => what))];
  };
  const fence = (lease: Lease): Promise<void> => fenceOn(client, lease);
  return { locks, client, lose, locked, reported, fence };
};
