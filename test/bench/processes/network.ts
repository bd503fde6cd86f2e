import { LOOPBACK } from '../../support/loopback.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { TestWorker } from '../../support/worker.js';

export type ToDelay =
  { readonly type: 'open'; readonly port: number } | { readonly type: 'delay'; readonly ms: number };
export type FromDelay = { readonly type: 'opened'; readonly port: number } | { readonly type: 'delayed' };

/** A way to the server on which everything takes longer. */
export class Network implements AsyncDisposable {
  private constructor(
    private readonly worker: TestWorker<ToDelay, FromDelay>,
    /** Where the server is to be found beyond it. */
    readonly url: string,
  ) {}

  static async to(server: RedisServer): Promise<Network> {
    const worker = TestWorker.start<ToDelay, FromDelay>(new URL('./delay.process.ts', import.meta.url));
    worker.send({ type: 'open', port: server.port });
    const { port } = await worker.next('opened');
    return new Network(worker, `redis://${LOOPBACK}:${port}`);
  }

  /** Delays all data by `ms` from now on, in each direction. */
  async delay(ms: number): Promise<void> {
    this.worker.send({ type: 'delay', ms });
    await this.worker.next('delayed');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.worker[Symbol.asyncDispose]();
  }
}

/** The network that all workloads share, with the processes on it; made for the first that needs it. */
export class SharedNetwork implements AsyncDisposable {
  private network: Promise<Network> | undefined;

  constructor(private readonly server: RedisServer) {}

  open(): Promise<Network> {
    return (this.network ??= Network.to(this.server));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.network)?.[Symbol.asyncDispose]();
  }
}
