import { randomBytes } from 'node:crypto';
import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import type { Backend } from './backend.js';
import { startDatabase } from './backends.js';
import { STORES } from './desks/index.js';
import type { LockDesk } from './desks/lock-desk.js';
import { cannotBeUsed } from './given.js';
import type { Narrator } from './narrator.js';
import type { DemoOptions } from './options.js';
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
  static async set(
    resources: Resources,
    { store, chargeMs }: Pick<DemoOptions, 'store' | 'chargeMs'>,
    narrator: Narrator,
  ): Promise<Stage> {
    const parts = resources.use(new Parts());
    const { title, remark, maxInstances = Infinity, findServer, open } = STORES[store];
    const [server, database, payment] = await Promise.all([
      narrator.during(`looking for ${title}`, findServer(parts)),
      narrator.during('looking for PostgreSQL', startDatabase(parts)),
      parts.start('payment service', './parts/payment.part.js', {}, [String(chargeMs)]),
    ]);
    const run = randomBytes(4).toString('hex');
    const namespace = `flash_sale_${run}`;
    // One hash slot has all keys of a run.
    const keyPrefix = `flash-sale:{${run}}:`;
    const opening = Sales.open(database.url, namespace, payment.url).catch((error: unknown) => {
      throw cannotBeUsed('PostgreSQL', database, error);
    });
    const sales = resources.use(await narrator.during('creating the tables', opening));
    const service = await open({ store, url: server.url, namespace }, resources, keyPrefix).catch(
      (error: unknown) => {
        throw cannotBeUsed(title, server, error);
      },
    );
    const locks: LockDesk = {
      description: [`${title}: ${server.description}.`, remark].filter(Boolean).join(' '),
      maxInstances,
      hold: async (key) => (await service.inspect(key))?.holders[0],
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

  /** Returns the names of `count` instances, or of as many as the store can keep apart. */
  instanceNames(count: number): string[] {
    const length = Math.min(count, this.locks.maxInstances);
    return Array.from({ length }, (_, index) => `instance ${index + 1}`);
  }

  /** Starts an instance in a process of its own. With `underFaults` it asks before it writes. Port 0: a free one. */
  startInstance(name: string, strategy: StrategyName, underFaults: boolean, port = 0): Promise<Part> {
    return this.apps.start(name, '../main.js', {
      ...this.environment,
      STRATEGY: strategy,
      UNDER_FAULTS: underFaults ? '1' : '',
      PORT: String(port),
    });
  }
}
