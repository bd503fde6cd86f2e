import type { RedisConnectionOptions } from '../connection/redis-connection.js';
import { ClusterServer } from './cluster-server.js';
import type { ClusterEndpoint } from './cluster-settings.js';
import { lookAt, type ClusterInfo } from './look-at.js';
import { textOfAddress, type NodeAddress } from './slots.js';

/**
 * Discovery connections, which only ask which server has which slots. The locks' own connections cannot do that: what
 * is known of a server when such a connection begins decides how it is used.
 */
export class DiscoveryConnections {
  private readonly out = new Set<ClusterServer>();

  constructor(
    private readonly endpoint: ClusterEndpoint,
    private readonly options: Pick<RedisConnectionOptions, 'timeoutMs' | 'runtime' | 'isCheck'>,
  ) {}

  /** Asks the servers that the options name, and these. Rejects when no server replies. */
  async lookFrom(others: readonly ClusterServer[]): Promise<ClusterInfo> {
    const { endpoint, out } = this;
    const addresses = new Map(
      [...endpoint.seeds, ...others.map(({ at }) => at)].map((at) => [textOfAddress(at), at]),
    );
    const sent = [...addresses.values()].map((at) => this.send(at));
    for (const one of sent) out.add(one);
    try {
      return await lookAt(sent, this.options.runtime);
    } finally {
      for (const one of sent) {
        out.delete(one);
        one.close();
      }
    }
  }

  close(): void {
    for (const one of this.out) one.close();
  }

  private send(at: NodeAddress): ClusterServer {
    return new ClusterServer(at, {
      ...this.options,
      connect: (address) => this.endpoint.connect(address),
      isSharded: () => false,
      onMoved: () => undefined,
    });
  }
}
