import type { Claim } from '../../../lib/core/seam/claim.js';
import type {
  KindStore,
  KindStores,
  LockStore,
  ReleaseOptions,
  Watch,
  WatchListener,
  StoreHost,
} from '../../../lib/core/seam/lock-store.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  QueueEntryReply,
  ReleaseReply,
} from '../../../lib/core/seam/reply.js';
import { EXPIRING, type LeaseModel } from '../../../lib/core/seam/lease-model.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { settled } from './virtual-runtime.js';

interface Replies {
  acquire: AcquireReply;
  extend: readonly ExtendReply[];
  keep: readonly QueueEntryReply[];
  release: ReleaseReply;
  inspect: KeyState | null;
  forceUnlock: boolean;
  ping: void;
}

type Name = keyof Replies;

/** A request that the core has sent; the test answers it, or lets it fail. */
export interface Request<N extends Name = Name> {
  readonly name: N;
  readonly claims: readonly Claim[];
  /** The first of the claims. */
  readonly claim: Claim;
  readonly uncertain: StoreFailure | undefined;
  readonly keepForMs: number | undefined;
  /** Until when a release may be sent. */
  readonly until: number | undefined;
  reply(value: Replies[N]): Promise<void>;
  fail(failure: unknown): Promise<void>;
}

/** A subscription that the core has made; the test says what is heard on it. */
export class ScriptedWatch implements Watch {
  live = false;
  closed = false;

  constructor(
    readonly key: string,
    private readonly listener: WatchListener,
  ) {}

  close(): void {
    this.closed = true;
    this.live = false;
  }

  async wake(): Promise<void> {
    if (!this.closed) this.listener.notified();
    await settled();
  }

  async becomeLive(): Promise<void> {
    this.live = true;
    await this.wake();
  }

  async fail(failure = new StoreFailure('no permission to listen', 'not-executed')): Promise<void> {
    if (!this.closed) this.listener.failed(failure);
    await settled();
  }
}

/** A grant with as many tokens as any claim asks for. */
export const granted = (token = 1, validForMs = 30_000): AcquireReply => ({
  status: 'granted',
  validForMs,
  token,
  tokens: 64,
});
/** A grant with tokens for so many leases. */
export const grantedFor = (leases: number, token = 1): AcquireReply => ({
  status: 'granted',
  validForMs: 30_000,
  token,
  tokens: leases,
});
export const taken = (retryInMs = 30_000): AcquireReply => ({ status: 'taken', retryInMs });
export const released = (othersWaiting = false): ReleaseReply => ({ wasHeld: true, othersWaiting });
export const notHeld: ReleaseReply = { wasHeld: false, othersWaiting: false };
export const unknown = (message = 'no answer'): StoreFailure => new StoreFailure(message, 'unknown');
export const notExecuted = (message = 'not sent'): StoreFailure => new StoreFailure(message, 'not-executed');

/** A claim for a question that has none. */
const about = (finalKey: string): Claim => ({
  kind: 'exclusive',
  finalKey,
  owner: '',
  leaseMs: 1,
  tokens: 0,
  waits: false,
});

/** A store without a will of its own: every request waits until the test answers it. */
export class ScriptedStore implements LockStore, KindStore {
  readonly name = 'The scripted store';
  readonly lease: LeaseModel = EXPIRING;
  readonly commandTimeoutMs = 1_000;
  /** The service that has opened it. */
  host: StoreHost | undefined;
  /** Whichever kind is asked for: the test sees it in the claim. */
  readonly kinds: KindStores = { exclusive: this, fair: this, permit: this, read: this, write: this };
  /** All requests ever sent, oldest first. */
  readonly sent: Request[] = [];
  readonly watches: ScriptedWatch[] = [];
  private readonly pending: Request[] = [];
  unsent?: NonNullable<KindStore['unsent']>;
  closed = false;

  open(host: StoreHost): Promise<void> {
    this.host = host;
    return Promise.resolve();
  }

  acquire(claim: Claim): Promise<AcquireReply> {
    return this.send('acquire', [claim]);
  }

  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    return this.send('extend', claims);
  }

  release(claim: Claim, how?: ReleaseOptions): Promise<ReleaseReply> {
    return this.send('release', [claim], how);
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.send('inspect', [about(finalKey)]);
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.send('forceUnlock', [about(finalKey)]);
  }

  ping(): Promise<void> {
    return this.send('ping', [about('')]);
  }

  watch({ finalKey }: Claim, listener: WatchListener): Watch {
    const watch = new ScriptedWatch(finalKey, listener);
    this.watches.push(watch);
    return watch;
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  /** Requests that wait for their answer. */
  get unanswered(): readonly Request[] {
    return this.pending;
  }

  /** The open watches. */
  get watching(): readonly ScriptedWatch[] {
    return this.watches.filter(({ closed }) => !closed);
  }

  /** The oldest request that waits for its answer; there has to be one, of this name. */
  next<N extends Name>(name: N): Request<N> {
    const [request] = this.pending;
    if (request?.name !== name) {
      const open = this.pending.map((one) => `${one.name} ${one.claim.finalKey}`).join(', ') || 'nothing';
      throw new Error(`expected the core to ask for "${name}" next, but it asks for: ${open}`);
    }
    return request as unknown as Request<N>;
  }

  /** How often something was asked for. */
  count(name: Name): number {
    return this.sent.filter((request) => request.name === name).length;
  }

  protected send<N extends Name>(
    name: N,
    claims: readonly Claim[],
    how: ReleaseOptions = {},
  ): Promise<Replies[N]> {
    return new Promise((resolve, reject) => {
      const done = async (settle: () => void): Promise<void> => {
        const at = this.pending.indexOf(request);
        if (at === -1) throw new Error(`the request "${name}" was answered already`);
        this.pending.splice(at, 1);
        settle();
        await settled();
      };
      const request: Request<N> = {
        name,
        claims,
        claim: claims[0]!,
        uncertain: how.uncertain,
        ...{ keepForMs: how.keepForMs, until: how.until },
        reply: (value) => done(() => resolve(value)),
        fail: (failure) => done(() => reject(failure)),
      };
      this.pending.push(request);
      this.sent.push(request);
    });
  }
}

/** One with a line, whose places have to be kept. */
export class QueueStore extends ScriptedStore {
  refreshEntries(claims: readonly Claim[]): Promise<readonly QueueEntryReply[]> {
    return this.send('keep', claims);
  }
}
