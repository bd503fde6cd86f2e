import type { Session } from '../../core/seam/lease-model.js';
import { getData, remove } from './requests.js';
import { CODE, hasCode } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';

const nothing = (): void => undefined;

/** An ephemeral node whose data is the last message to this process. Of messages at the same time, one arrives. */
export class Inbox {
  private session: Session | undefined;
  private isSet = false;
  private isClosed = false;
  private unwatch = nothing;
  private reading: Promise<void> = Promise.resolve();

  /** @param create creates the node */
  constructor(
    private readonly zk: ZkSession,
    private readonly path: string,
    private readonly create: () => Promise<void>,
    private readonly listener: (text: string) => void,
  ) {}

  /** Watches the node unless it does so. A session that ends takes node and watch with it. */
  open(): void {
    if (this.isClosed || (this.isSet && this.session?.over.aborted !== true)) return;
    this.isSet = true;
    this.session = undefined;
    // The next call tries again.
    this.reading = this.receive().catch(() => void (this.isSet = false));
  }

  /** Delivers no more messages. With `removes`, it also removes the node. */
  close({ removes }: { readonly removes: boolean }): void {
    this.isClosed = true;
    this.unwatch();
    if (removes) void this.reading.then(() => this.zk.request(remove(this.path))).catch(nothing);
  }

  private async receive(): Promise<void> {
    const data = await this.read().catch(async (failure: unknown) => {
      if (!hasCode(failure, CODE.noNode)) throw failure;
      await this.create();
      return this.read();
    });
    if (data.length > 0 && !this.isClosed) this.listener(data.toString());
  }

  private read(): Promise<Buffer> {
    const { zk, path } = this;
    return zk.with({}, (session) => {
      this.session = session;
      this.unwatch();
      if (!this.isClosed) this.unwatch = zk.watches.add('data', path, () => this.changed());
      return zk.request(getData(path, !this.isClosed), { within: session });
    });
  }

  private changed(): void {
    this.isSet = false;
    this.open();
  }
}
