import type { Watch } from '../../../core/seam/lock-store.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { isReplyError, unwrapped } from '../connection/redis-failure.js';
import type { MessageListener } from '../connection/redis-subscriber.js';
import type { Channels } from '../connection/redis-topology.js';
import type { ClusterServer } from './cluster-server.js';
import { readRedirect } from './slots.js';

export interface ChannelsHost {
  /** Returns the server that announces the channel; undefined when that is unknown. */
  listensAt(channel: string): ClusterServer | undefined;
  /** Resolves when it is known which server has which slots. */
  known(): Promise<void>;
  /** Looks up again which server has which slots, and then calls `follow`. */
  refresh(): void;
}

/** A channel with a listener, and the server that announces it at the moment. */
interface Listening {
  readonly channel: string;
  readonly listener: MessageListener;
  at: ClusterServer | undefined;
  watch: Watch | undefined;
}

/** Listens to channels at the servers that have their slots, also after a slot migration. */
export class ClusterChannels implements Channels {
  private readonly all = new Set<Listening>();

  constructor(private readonly host: ChannelsHost) {}

  watch(channel: string, listener: MessageListener): Watch {
    const one: Listening = { channel, listener, at: undefined, watch: undefined };
    this.all.add(one);
    this.attach(one);
    return {
      get live() {
        return one.watch?.live ?? false;
      },
      close: () => {
        this.all.delete(one);
        one.watch?.close();
      },
    };
  }

  isLive(channel: string): boolean {
    return this.host.listensAt(channel)?.subscriber.isLive(channel) ?? false;
  }

  /** After a slot migration, resubscribes on the new owners. */
  follow(): void {
    for (const one of [...this.all]) {
      if (this.all.has(one) && this.host.listensAt(one.channel) !== one.at) this.attach(one);
    }
  }

  private attach(one: Listening): void {
    const { host } = this;
    one.watch?.close();
    one.at = host.listensAt(one.channel);
    one.watch = one.at && this.listen(one, one.at);
    if (one.at) return;
    host.known().then(
      () => this.all.has(one) && !one.at && this.attachNow(one),
      (failure: StoreFailure) => this.all.has(one) && one.listener.failed(failure),
    );
  }

  /** Listens at the slot's server. While no server has the slot, asks for a refresh. */
  private attachNow(one: Listening): void {
    if (this.host.listensAt(one.channel)) this.attach(one);
    else this.host.refresh();
  }

  private listen(one: Listening, at: ClusterServer): Watch {
    const { listener } = one;
    return at.subscriber.watch(one.channel, {
      notified: () => listener.notified(),
      ...(listener.message && { message: (text: string) => listener.message!(text) }),
      ...(listener.permanent !== undefined && { permanent: listener.permanent }),
      failed: (failure) => {
        if (!isElsewhere(failure)) listener.failed(failure);
        else if (one.at === at) {
          one.watch?.close();
          one.at = undefined;
          this.host.refresh();
        }
      },
    });
  }
}

const isElsewhere = ({ cause }: StoreFailure): boolean =>
  isReplyError(cause) && readRedirect(unwrapped(cause.message), '') !== undefined;
