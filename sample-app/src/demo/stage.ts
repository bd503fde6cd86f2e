import { randomBytes } from 'node:crypto';
import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import { startDatabase, startRedis, type Backend } from './backends.js';
import { Parts, type Part } from './parts.js';
import { RedisDesk } from './redis-desk.js';
import type { Resources } from './resources.js';
import { Sales } from './sales.js';

/**
 * Lease length in ms. It is short, so that the outage after a kill is short, too. Start with 30 seconds in production.
 */
export const WATCHDOG_MS = 2_000;

/** Everything around the instances of the app: servers, payment service, tables. */
export class Stage {
  private constructor(
    readonly redis: Backend,
    readonly database: Backend,
    readonly sales: Sales,
    readonly locks: RedisDesk,
    private readonly apps: Parts,
    private readonly environment: Record<string, string>,
  ) {}

  /** Starts everything. The owner of `resources` closes it. */
  static async set(resources: Resources): Promise<Stage> {
    const parts = resources.use(new Parts());
    const [redis, database, payment] = await Promise.all([
      startRedis(parts),
      startDatabase(parts),
      parts.start('payment service', './parts/payment.part.js'),
    ]);
    const run = randomBytes(4).toString('hex');
    const namespace = `flash_sale_${run}`;
    const keyPrefix = `flash-sale:{${run}}:`;
    const sales = resources.use(await Sales.open(database.url, namespace, payment.url));
    const locks = resources.use(await RedisDesk.open(redis.url, keyPrefix));
    // In a group of their own, and last: they have to end before keys and tables are removed.
    const apps = resources.use(new Parts());
    return new Stage(redis, database, sales, locks, apps, {
      REDIS_URL: redis.url,
      DATABASE_URL: database.url,
      PAYMENT_URL: payment.url,
      NAMESPACE: namespace,
      KEY_PREFIX: keyPrefix,
      WATCHDOG_MS: String(WATCHDOG_MS),
    });
  }

  /** Starts `count` instances of the app, each in its own process. With `underFaults` they ask before they write. */
  startInstances(count: number, strategy: StrategyName, underFaults = false): Promise<Part[]> {
    const environment = { ...this.environment, STRATEGY: strategy, UNDER_FAULTS: underFaults ? '1' : '' };
    return Promise.all(
      Array.from({ length: count }, (_, index) =>
        this.apps.start(`instance ${index + 1}`, '../main.js', environment),
      ),
    );
  }
}
