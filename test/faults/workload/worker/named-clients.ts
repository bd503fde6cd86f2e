import { Redis } from 'ioredis';
import type { CreateRedisClient } from '../../../../lib/stores/redis/redis-settings.js';

/** How a worker's connections are called in CLIENT LIST. */
export const connectionName = (process: string, role: 'commands' | 'subscriber'): string => `${process}-${role}`;

/** Makes the store's clients, so that faults can tell them apart. */
export const namedClients =
  (port: number, process: string): CreateRedisClient =>
  (role, settings) =>
    new Redis({ host: '127.0.0.1', port, ...settings, connectionName: connectionName(process, role) });
