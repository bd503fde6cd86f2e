import { RedisServer } from '../../support/servers/redis-server.js';
import { Network } from './network.js';

/** Redis servers that know nothing of each other, and a way to each of them on which everything can take longer. */
export class QuorumServers implements AsyncDisposable {
  private ways: Promise<readonly Network[]> | undefined;

  private constructor(readonly servers: readonly RedisServer[]) {}

  static async start(count: number): Promise<QuorumServers> {
    return new QuorumServers(await RedisServer.startAll(Array.from({ length: count }, () => ({}))));
  }

  get urls(): readonly string[] {
    return this.servers.map(({ url }) => url);
  }

  /** Where the servers are to be found through the network. */
  async farUrls(): Promise<readonly string[]> {
    return (await this.networks()).map(({ url }) => url);
  }

  /** Delays all data by the ms of each server from now on, in each direction. */
  async delay(eachMs: readonly number[]): Promise<void> {
    const ways = await this.networks();
    await Promise.all(ways.map((way, i) => way.delay(eachMs[i]!)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ways = await this.ways?.catch(() => []);
    await Promise.all((ways ?? []).map((way) => way[Symbol.asyncDispose]()));
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  private networks(): Promise<readonly Network[]> {
    return (this.ways ??= Promise.all(this.servers.map((server) => Network.to(server))));
  }
}
