import type { ProxyConnection, DataListener } from '../../support/tcp-proxy.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { SlowLink, type Pace } from './slow-link.js';

/** Where a line leads. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** The line from one seat to one server: a proxy for faults, and behind it a stretch whose speed can be changed. */
export class ProxyLink implements AsyncDisposable {
  private constructor(
    readonly proxy: TcpProxy,
    readonly link: SlowLink,
  ) {}

  static async start(target: Target): Promise<ProxyLink> {
    const link = await SlowLink.start(target);
    return new ProxyLink(await TcpProxy.start(link), link);
  }

  get port(): number {
    return this.proxy.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.close();
    await this.link[Symbol.asyncDispose]();
  }
}

/** Some lines, or all of a seat, to which the same is done. */
export class ProxyLinks {
  constructor(private readonly all: readonly ProxyLink[]) {}

  /** The connections that are open, on all of them. */
  get connections(): readonly ProxyConnection[] {
    return this.all.flatMap(({ proxy }) => proxy.connections);
  }

  /** See {@link TcpProxy.find}. */
  find(text: string): readonly ProxyConnection[] {
    return this.all.flatMap(({ proxy }) => proxy.find(text));
  }

  /** See {@link TcpProxy.onData}. */
  onData(listener: DataListener): () => void {
    const stops = this.all.map(({ proxy }) => proxy.onData(listener));
    return () => {
      for (const stop of stops) stop();
    };
  }

  delay(delayMs: number): void {
    for (const { proxy } of this.all) proxy.delay(delayMs);
  }

  blackhole(): void {
    for (const { proxy } of this.all) proxy.blackhole();
  }

  cut(): void {
    for (const { proxy } of this.all) proxy.cut();
  }

  refuse(): void {
    for (const { proxy } of this.all) proxy.refuse();
  }

  /** See {@link SlowLink.setPace}. */
  setPace(pace: Pace | undefined): void {
    for (const { link } of this.all) link.setPace(pace);
  }

  /** Ends every fault but a slow pace. */
  async restore(): Promise<void> {
    for (const { proxy } of this.all) await proxy.restore();
  }
}
