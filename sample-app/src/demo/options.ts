import { parseArgs } from 'node:util';
import {
  isStrategyName,
  STRATEGY_NAMES,
  type StrategyName,
} from '../flash-sale/strategies/strategy-names.js';
import { isStoreName, STORE_NAMES, type StoreName } from '../lock-place.js';

export interface DemoOptions {
  readonly store: StoreName;
  readonly buyers: number;
  readonly items: number;
  readonly strategies: readonly StrategyName[];
  readonly instances: number;
  /** How long the bank takes for a charge, in ms. */
  readonly chargeMs: number;
  readonly all: boolean;
  readonly serve: boolean;
  readonly json: boolean;
  readonly help: boolean;
}

/** A mistake on the command line; its message is all that the user needs. */
export class UsageError extends Error {}

export const USAGE = `The flash sale: several instances of a Nest app sell the same few articles to a
crowd.

npm start               runs the sale without a lock and with @Locked, stops and
                        kills an instance, prints what came of it (20 s)
npm start -- --all      the same with 2,000 buyers and every strategy (2.5 min)
npm start -- --serve    keeps the app up, and the page with its buttons, until
                        Ctrl-C

  --store <name>        what keeps the locks (default redis):
                        ${STORE_NAMES.join(', ')}
  --buyers <n>          how many different buyers there are (default 100);
                        every tenth clicks five times
  --items <n>           how many articles there are (default 5; 40 with --serve)
  --strategies <a,b>    some of ${STRATEGY_NAMES.join(', ')}
                        (default none,locked; with --serve the first, default
                        locked)
  --instances <n>       instances of the app with --serve (default 3)
  --charge-ms <n>       how long the bank takes for a charge (default 150;
                        3 with --all, 350 with --serve)
  --json                the result as JSON on stdout, all else on stderr
  --help                this text

REDIS_URL and DATABASE_URL (PostgreSQL) name servers to use. Without them a
redis-server or valkey-server on the PATH is started, else an embedded Valkey;
and an embedded PostgreSQL. --store mysql keeps the locks in the server of
MYSQL_URL, else in a mariadbd that is started; --store postgres in the server of
DATABASE_URL, else in an embedded one; --store zookeeper in the servers of
ZOOKEEPER_CONNECT, else in one that is started with Java. --store memory sells
with one instance, without faults. Nothing that was there before is touched.`;

const wholeNumber = (name: string, value: string, min: number): number => {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < min) {
    throw new UsageError(`--${name} must be a whole number of at least ${min}, not "${value}".`);
  }
  return number;
};

const strategyList = (value: string): StrategyName[] =>
  value.split(',').map((name) => {
    if (isStrategyName(name)) return name;
    throw new UsageError(`There is no strategy "${name}". Choose from ${STRATEGY_NAMES.join(', ')}.`);
  });

const storeNamed = (value: string): StoreName => {
  if (isStoreName(value)) return value;
  throw new UsageError(`There is no store "${value}". Choose from ${STORE_NAMES.join(', ')}.`);
};

/**
 * Sizes of a run that the command line does not name. A charge of a short run takes as long as at a real bank, so that
 * its few holds can be seen.
 */
const SIZES = {
  short: { buyers: 100, items: 5, strategies: ['none', 'locked'], chargeMs: 150 },
  all: { buyers: 2_000, items: 100, strategies: STRATEGY_NAMES, chargeMs: 3 },
  serve: { buyers: 100, items: 40, strategies: ['locked'], chargeMs: 350 },
} as const;

export const parseOptions = (args: readonly string[]): DemoOptions => {
  const { values } = parse(args);
  const { all, serve, json, help } = values;
  const sizes = SIZES[serve ? 'serve' : all ? 'all' : 'short'];
  return {
    store: storeNamed(values.store),
    buyers: wholeNumber('buyers', values.buyers ?? String(sizes.buyers), 1),
    items: wholeNumber('items', values.items ?? String(sizes.items), 1),
    instances: wholeNumber('instances', values.instances, 1),
    strategies: values.strategies ? strategyList(values.strategies) : sizes.strategies,
    chargeMs: wholeNumber('charge-ms', values['charge-ms'] ?? String(sizes.chargeMs), 0),
    ...{ all, serve, json, help },
  };
};

const parse = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        store: { type: 'string', default: 'redis' },
        buyers: { type: 'string' },
        items: { type: 'string' },
        instances: { type: 'string', default: '3' },
        'charge-ms': { type: 'string' },
        strategies: { type: 'string' },
        all: { type: 'boolean', default: false },
        serve: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\nTry --help.`);
  }
};
