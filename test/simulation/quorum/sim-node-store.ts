import type { Claim, ClaimOf } from '../../../lib/core/seam/claim.js';
import { EXPIRING } from '../../../lib/core/seam/lease-model.js';
import type { LockKind } from '../../../lib/core/kinds/kinds.js';
import type { ReleaseOptions, Watch, WatchListener, StoreHost } from '../../../lib/core/seam/lock-store.js';
import type { NodeKind, NodeStore, ServerTimes } from '../../../lib/stores/redis/quorum/node-store.js';
import type { AcquireReply, KeyState } from '../../../lib/core/seam/reply.js';
import type { Agenda } from '../engine/agenda.js';
import type { NodeLink } from './node-link.js';

/** The store that a process has on one node: what the Redis store does, on a link. */
export class SimNodeStore implements NodeStore {
  readonly name = 'The node';
  readonly lease = EXPIRING;
  readonly commandTimeoutMs = 1_000;
  readonly kinds: NodeStore['kinds'];
  /** Its process has been told what the clock of the node says. */
  knowsClock = false;
  private readonly watches = new Set<{
    readonly key: string;
    readonly listener: WatchListener;
    open: boolean;
    stop: () => void;
  }>();
  private risk: () => void = () => undefined;

  constructor(
    private readonly link: NodeLink,
    private readonly agenda: Agenda,
  ) {
    this.kinds = {
      exclusive: this.kind('exclusive'),
      read: this.kind('read'),
      write: this.kind('write'),
    };
    link.onAgain = () => {
      this.risk();
      for (const watch of this.watches) this.subscribe(watch);
    };
  }

  private kind<K extends LockKind>(name: K): NodeKind<ClaimOf<K>> {
    const { link } = this;
    const space = () => link.node.space;
    return {
      acquire: (claim: Claim) =>
        link.send(
          () =>
            space()
              .toTake(name, claim.finalKey)
              .acquire(claim as never) as AcquireReply,
        ),
      extendMany: (claims) => link.send(() => claims.map((claim) => space().of(name).extend(claim))),
      commit: (claim, token) =>
        link.send(() => {
          link.node.commits += 1;
          return space().of(name).commit?.(claim, token) ?? false;
        }),
      release: async (claim: Claim, { uncertain, keepForMs }: ReleaseOptions = {}) => {
        if (uncertain) await link.endSessionOf(uncertain);
        return link.send(() => ({
          wasHeld: space()
            .of(name)
            .release(claim as never, keepForMs),
          othersWaiting: false,
        }));
      },
      watch: (claim, listener) => this.watch(claim.finalKey, listener),
    };
  }

  open({ atRisk }: StoreHost): Promise<void> {
    this.risk = atRisk;
    return Promise.resolve();
  }

  async serverTimes(): Promise<ServerTimes> {
    const times = await this.link.send(() => this.link.node.times);
    this.knowsClock = true;
    return times;
  }

  inspect(finalKey: string): Promise<KeyState | null> {
    return this.link.send(() => this.link.node.space.inspect(finalKey));
  }

  forceUnlock(finalKey: string): Promise<boolean> {
    return this.link.send(() => this.link.node.space.forceUnlock(finalKey));
  }

  ping(): Promise<void> {
    return this.link.send(() => undefined);
  }

  close(): Promise<void> {
    this.link.close();
    return Promise.resolve();
  }

  private watch(key: string, listener: WatchListener): Watch {
    const watch = { key, listener, open: true, stop: (): void => undefined };
    this.watches.add(watch);
    this.subscribe(watch);
    const { link } = this;
    return {
      get live() {
        return watch.open && link.session !== undefined;
      },
      close: () => {
        watch.open = false;
        watch.stop();
        this.watches.delete(watch);
      },
    };
  }

  /** Messages come a moment later, over the same way. */
  private subscribe(watch: {
    readonly key: string;
    readonly listener: WatchListener;
    open: boolean;
    stop: () => void;
  }): void {
    const { link, agenda } = this;
    const wake = (): void => {
      if (watch.open) watch.listener.notified();
    };
    link
      .send(() => {
        watch.stop();
        const { session } = link;
        const notify = (): void => {
          if (!session?.alive) return;
          agenda.at(agenda.now + 0.5, () => link.process.arrive(wake));
        };
        watch.stop = link.node.space.subscribe(watch.key, { process: this, notify });
      })
      .then(wake, () => undefined);
  }
}
