import { LockConfigurationError, type LockServiceOptions } from '../index.js';
import type { Invocation } from './arguments.js';

/** Loads an optional package before the store that needs it. */
const load = async <T>(option: string, name: string, imports: () => Promise<T>): Promise<T> => {
  try {
    return await imports();
  } catch (cause) {
    throw new LockConfigurationError(
      `${option} needs the package ${name}, which cannot be loaded: npm install ${name}.`,
      { cause },
    );
  }
};

/**
 * Resolves with the options of the service for a command. Connects to nothing.
 *
 * @throws LockConfigurationError for an address that cannot be used
 */
export const optionsOf = async ({
  command,
  address,
}: Pick<Invocation, 'command' | 'address'>): Promise<LockServiceOptions> => {
  switch (address.store) {
    case 'redis': {
      await load('--redis', 'ioredis', async () => import.meta.resolve('ioredis'));
      const { QuorumStore, RedisStore } = await import('../entries/redis.js');
      // A list would show each string with the prefix, also one that is no lock.
      const foreignHold = command === 'list' ? undefined : 'taken';
      const nodes = address.sources.map((redis) => new RedisStore({ redis, foreignHold }));
      return { store: nodes.length === 1 ? nodes[0]! : new QuorumStore({ nodes }) };
    }
    case 'postgres': {
      await load('--postgres', 'pg', () => import('pg'));
      const { PostgresStore } = await import('../entries/postgres.js');
      return { store: new PostgresStore(address.options) };
    }
    case 'mysql': {
      await load('--mysql', 'mysql2', () => import('mysql2'));
      const { MysqlStore } = await import('../entries/mysql.js');
      return { store: new MysqlStore(address.options) };
    }
    case 'zookeeper': {
      const { ZooKeeperStore } = await import('../entries/zookeeper.js');
      return { store: new ZooKeeperStore(address.options) };
    }
  }
};
