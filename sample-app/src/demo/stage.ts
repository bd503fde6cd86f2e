import { randomBytes } from 'node:crypto';
import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import type { StoreName } from '../lock-place.js';
import { startDatabase, type Backend } from './backends.js';
import { STORES } from './desks/index.js';
import type { LockDesk } from './desks/lock-desk.js';
import { UsageError } from './options.js';
import { Parts, type Part } from './parts.js';
import type { Resources } from './resources.js';
import { Sales } from './sales.js';

/**
 * Lease length in ms. It is short, so that the outage after a kill is short, too. Start with 30 seconds in production.
 */
export const WATCHDOG_MS = 2_000;

/** Everything around the instances of the app: servers, payment service, tables. */
export class Stage {
  private constructor(
    readonly database: Backend,
    readonly sales: Sales,
    readonly locks: LockDesk,
    private readonly apps: Parts,
    private readonly environment: Record<string, string>,
  ) {}

  /** Starts everything. The owner of `resources` closes it. */
  static async set(resources: Resources, store: StoreName): Promise<Stage> {
    const parts = resources.use(new Parts());
    const { title, remark, maxInstances = Infinity, findServer, open } = STORES[store];
    const [server, database, payment] = await Promise.all([
      findServer(parts),
      startDatabase(parts),
      parts.start('payment service', './parts/payment.part.js'),
    ]);
    const run = randomBytes(4).toString('hex');
    const namespace = `flash_sale_${run}`;
    // One hash slot has all keys of a run.
    const keyPrefix = `flash-sale:{${run}}:`;
    const sales = resources.use(await Sales.open(database.url, namespace, payment.url));
    const service = await open({ store, url: server.url, namespace }, resources, keyPrefix).catch(
      ({ message }: Error) => {
        throw new UsageError(`${title} cannot be used (${server.description}): ${message}`);
      },
    );
    const locks: LockDesk = {
      description: [`${title}: ${server.description}.`, remark].filter(Boolean).join(' '),
      maxInstances,
      owner: async (key) => (await service.inspect(key))?.holders[0]?.owner,
    };
    // In a group of their own, and last: they have to end before keys and tables are removed.
    const apps = resources.use(new Parts());
    return new Stage(database, sales, locks, apps, {
      LOCK_STORE: store,
      LOCK_URL: server.url,
      DATABASE_URL: database.url,
      PAYMENT_URL: payment.url,
      NAMESPACE: namespace,
      KEY_PREFIX: keyPrefix,
      WATCHDOG_MS: String(WATCHDOG_MS),
    });
  }

  /**
   * Starts `count` instances of the app, or as many as the store can keep apart, each in its own process. With
   * `underFaults` they ask before they write.
   */
  startInstances(count: number, strategy: StrategyName, underFaults = false): Promise<Part[]> {
    const environment = { ...this.environment, STRATEGY: strategy, UNDER_FAULTS: underFaults ? '1' : '' };
    return Promise.all(
      Array.from({ length: Math.min(count, this.locks.maxInstances) }, (_, index) =>
        this.apps.start(`instance ${index + 1}`, '../main.js', environment),
      ),
    );
  }
}
