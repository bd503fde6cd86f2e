import type { Runtime } from '../../core/runtime.js';
import type { Watch, WatchListener } from '../../core/seam/lock-store.js';
import { Lane } from '../sql/lane.js';
import { bytes, HEAD, listOf, nameOf, nameTextOf, nothing } from '../sql/sql-terms.js';
import { raw, sql, type SqlSession, type Statement } from '../sql/sql.js';
import { NOW, rowsOf, type MysqlNames } from './mysql-terms.js';

/** Bells that are waited for at the same time at most, each on a connection. Keys of further ones are only polled. */
const MAX_PARKED = 4;
/** How long a statement waits for a bell at most, in s: meanwhile it delays changes of the table's definition. */
const PARKED_S = raw('1');
/** Time in ms within which such a statement has its reply. */
const TIMEOUT_MS = 3_000;
/** A bell that answers within this time in ms although nothing was released has no owner. */
const TOO_SOON_MS = 3;
/** For how long such a bell is left alone, in ms. */
const LEFT_ALONE_MS = 200;

interface Watched {
  readonly finalKey: string;
  readonly listener: WatchListener;
  /** Bell of the process that holds the key, as far as is known. */
  bell?: string | undefined;
}

interface BellHost {
  readonly runtime: Runtime;
  connect(): Promise<SqlSession>;
}

/**
 * Wakes processes at a release, in a database without notifications. A named lock is the bell of a process, which keeps
 * it once another process has waited for it. At a release it gives the bell away and takes it back. Each process that
 * waits for the bell then gets it once, in turn, and asks about its keys.
 *
 * A process waits for a bell only while its owner holds the keys. The same statement checks that. The release is
 * committed before the bell rings, so no release falls in between. Where one does, polling finds the free key.
 */
export class MysqlBell {
  private readonly watched = new Set<Watched>();
  private readonly parked = new Map<string, Lane>();
  /** Bells without an owner, and until when they are left alone. */
  private readonly leftAlone = new Map<string, number>();
  private own: Lane | undefined;
  private isRinging = false;
  private isToRing = false;
  private closed = false;

  constructor(
    private readonly names: MysqlNames,
    private readonly host: BellHost,
  ) {}

  watch(finalKey: string, listener: WatchListener): Watch {
    const { watched, parked } = this;
    const one: Watched = { finalKey, listener };
    watched.add(one);
    return {
      get live() {
        return watched.has(one) && one.bell !== undefined && parked.has(one.bell);
      },
      close: () => void watched.delete(one),
    };
  }

  /** Waits for the bell of the process that holds a watched key. */
  seen(finalKey: string, bell: string): void {
    if (bell === '' || bell === this.names.bell.toString()) return;
    for (const one of this.watched) if (one.finalKey === finalKey) one.bell = bell;
    this.park(bell);
  }

  /** Wakes the processes that wait for a key of this one. It has just released one. */
  ring(): void {
    this.isToRing = true;
    if (!this.isRinging && !this.closed) void this.ringUntilDone();
  }

  close(): void {
    this.closed = true;
    this.watched.clear();
    for (const lane of [this.own, ...this.parked.values()]) lane?.destroy();
  }

  private lane(): Lane {
    return new Lane({ ...this.host, name: 'MySQL', timeoutMs: TIMEOUT_MS });
  }

  /** One ring is for all releases that have come before it. */
  private async ringUntilDone(): Promise<void> {
    const { bell } = this.names;
    const statement = {
      sql: sql`SELECT RELEASE_LOCK(${bell}), GET_LOCK(${bell}, ${PARKED_S})`,
      read: nothing,
    };
    this.own ??= this.lane();
    this.isRinging = true;
    while (this.isToRing) {
      this.isToRing = false;
      // Without a reply, processes find the key by polling.
      await this.own.run(() => statement).catch(() => undefined);
    }
    this.isRinging = false;
  }

  private park(bell: string): void {
    const { parked, leftAlone } = this;
    if (this.closed || parked.has(bell) || parked.size >= MAX_PARKED) return;
    const now = this.host.runtime.now();
    for (const [other, until] of leftAlone) if (until <= now) leftAlone.delete(other);
    if (leftAlone.has(bell)) return;
    const lane = this.lane();
    parked.set(bell, lane);
    void this.waitAt(bell, lane).finally(() => {
      parked.delete(bell);
      lane.destroy();
    });
  }

  private async waitAt(bell: string, lane: Lane): Promise<void> {
    const { runtime } = this.host;
    for (;;) {
      const keys = [...this.watched].filter((one) => one.bell === bell);
      if (keys.length === 0) return;
      const sentAt = runtime.now();
      const reply = await lane.run(() => this.waiting(bell, keys)).catch(() => undefined);
      if (!reply) return;
      const free = keys.filter(({ finalKey }) => !reply.held.has(nameTextOf(finalKey)));
      for (const one of free) {
        one.bell = undefined;
        if (this.watched.has(one)) one.listener.notified();
      }
      if (reply.rang && free.length === 0 && runtime.now() - sentAt < TOO_SOON_MS) {
        this.leftAlone.set(bell, runtime.now() + LEFT_ALONE_MS);
        return;
      }
    }
  }

  /** Replies: the first statement says whether the bell rang, the second one which keys its owner holds now. */
  private waiting(
    bell: string,
    keys: readonly Watched[],
  ): Statement<{ rang: boolean; held: ReadonlySet<string> }> {
    const id = bytes(bell);
    const names = [...new Set(keys.map(({ finalKey }) => finalKey))].map(nameOf);
    const held = sql`FROM ${this.names.table} WHERE name IN (${listOf(names)}) AND ${HEAD} AND until > ${NOW} AND bell = ${id}`;
    return {
      sql: sql`SELECT IF((SELECT COUNT(*) ${held}) = ${names.length}, GET_LOCK(${id}, ${PARKED_S}), 0) AS rang, RELEASE_LOCK(${id}); SELECT name ${held}`,
      read: (reply) => ({
        rang: rowsOf<{ rang: number | null }>(reply, 0)[0]!.rang === 1,
        held: new Set(rowsOf<{ name: Buffer }>(reply, 1).map(({ name }) => name.toString())),
      }),
    };
  }
}
