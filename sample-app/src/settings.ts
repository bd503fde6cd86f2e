import { isStrategyName, type StrategyName } from './flash-sale/strategies/strategy-names.js';
import { isStoreName, type LockPlace } from './lock-place.js';

/** Settings of one instance of the app, from its environment. */
export interface AppSettings {
  readonly locks: LockPlace;
  readonly databaseUrl: string;
  readonly paymentUrl: string;
  readonly strategy: StrategyName;
  /** Prefix of every table name. */
  readonly namespace: string;
  /** Prefix of every key. */
  readonly keyPrefix: string;
  /** How long the sale stands still when a holder of the lock dies, in ms. */
  readonly watchdogMs: number;
  /** Whether to ask the demo before each write under the lock: the demo may stop the instance there. */
  readonly underFaults: boolean;
  /** Port; 0: any free port. */
  readonly port: number;
}

const required = (env: NodeJS.ProcessEnv, name: string): string => {
  const value = env[name];
  if (!value)
    throw new Error(`${name} is not set. "npm start -- --serve" starts an instance with all it needs.`);
  return value;
};

export const readSettings = (env: NodeJS.ProcessEnv): AppSettings => {
  const strategy = env['STRATEGY'] ?? 'locked';
  if (!isStrategyName(strategy)) throw new Error(`STRATEGY names no strategy: "${strategy}".`);
  const store = env['LOCK_STORE'] ?? 'redis';
  if (!isStoreName(store)) throw new Error(`LOCK_STORE names no store: "${store}".`);
  const url = store === 'memory' ? '' : required(env, 'LOCK_URL');
  const namespace = env['NAMESPACE'] ?? 'flash_sale';
  return {
    strategy,
    locks: { store, url, namespace },
    databaseUrl: required(env, 'DATABASE_URL'),
    paymentUrl: required(env, 'PAYMENT_URL'),
    namespace,
    keyPrefix: env['KEY_PREFIX'] ?? 'flash-sale:',
    watchdogMs: Number(env['WATCHDOG_MS'] ?? 30_000),
    underFaults: env['UNDER_FAULTS'] === '1',
    port: Number(env['PORT'] ?? 0),
  };
};
