import { Curator, type CuratorOptions } from '../../support/curator/curator.js';
import { ZooKeeperServer } from '../../support/zookeeper/zookeeper-server.js';

const COMPLAINT = / (WARN|ERROR) /;

/**
 * A ZooKeeper server, and processes around it that end with it. That end fails if the log of a Curator has a warning or an
 * error.
 */
export class CuratorSides implements AsyncDisposable {
  private readonly curators: Curator[] = [];

  private constructor(readonly server: ZooKeeperServer) {}

  static async start(): Promise<CuratorSides> {
    return new CuratorSides(await ZooKeeperServer.start());
  }

  async java(options?: CuratorOptions): Promise<Curator> {
    const java = await Curator.start(this.server.address, options);
    this.curators.push(java);
    return java;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const curators = this.curators.splice(0).reverse();
    for (const one of curators) await one[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    for (const { log } of curators) {
      if (COMPLAINT.test(log)) throw new Error(`Curator complains:\n${log}`);
    }
  }
}
