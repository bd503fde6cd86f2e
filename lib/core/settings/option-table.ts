const OF_MODULE = 'of RedisLockModule.forRoot()';
const OF_CALLS =
  'of @Locked, of @Limited, and of the methods of LockService and of locks.permits(key) that acquire';
const OF_DECORATORS = 'of @Locked and @Limited';
const OF_ACQUIRES =
  'of withLock, tryWithLock, acquire and tryAcquire; a method with @Locked is called with lease.call';
const OF_LOCKS_ONLY = 'of @Locked, withLock, tryWithLock, acquire and tryAcquire';
const OF_SECTIONS = 'of @Locked, of @Limited, of withLock, tryWithLock and withPermit, and of the module';
const OF_REDIS = 'of RedisStore: forRoot({ store: new RedisStore({ redis, … }) })';
const OF_QUORUM = 'of QuorumStore: forRoot({ store: new QuorumStore({ nodes, … }) })';
const OF_TESTING = 'of RedisLockTestingModule.forRoot()';
const OF_INTERCEPTOR = `${OF_MODULE}, in its interceptor: { … }`;

/** Options that go together. An option of several groups has the same name and check in each. */
type Group =
  | 'settings' // of each service
  | 'service' // of forRoot and createLockService
  | 'module' // of forRoot
  | 'interceptor'
  | 'lock'
  | 'inside' // of calls that prove where they run
  | 'section'
  | 'once'
  | 'permit'
  | 'number' // of permits
  | 'decorator'
  | 'lead'
  | 'leader' // of @Leader
  | 'wait' // for a semaphore or a latch
  | 'cap' // of waits in tests
  | 'testing';

/**
 * All options but those of one store, in the order in which messages list them. Each has the groups that contain it, and where
 * it belongs, for a message about a misplaced one.
 */
const OPTIONS = {
  keyPrefix: [['settings'], OF_MODULE],
  waitMs: [['settings', 'lock', 'permit', 'wait'], OF_CALLS],
  leaseMs: [['settings', 'lock', 'permit'], OF_CALLS],
  watchdogMs: [['settings', 'lock', 'permit', 'lead'], `${OF_CALLS}, and of the module`],
  holdAtLeastMs: [['lock', 'permit'], OF_CALLS],
  maxHoldMs: [['settings', 'lock', 'permit'], OF_CALLS],
  signal: [['lock', 'permit', 'wait'], OF_CALLS],
  inside: [['inside'], OF_ACQUIRES],
  mode: [['lock', 'testing'], `${OF_LOCKS_ONLY}, and another one ${OF_TESTING}`],
  label: [['lock', 'permit', 'lead'], OF_CALLS],
  maxWaiters: [['settings'], OF_MODULE],
  onLost: [['settings', 'section'], OF_SECTIONS],
  awaitRelease: [['settings', 'section'], OF_SECTIONS],
  oncePerMs: [['once'], 'of @Locked, withLock and tryWithLock, whose sections succeed or fail'],
  permits: [['number'], 'of @Limited and of locks.permits(key, { permits })'],
  onBusy: [['decorator'], OF_DECORATORS],
  service: [['decorator', 'leader'], OF_DECORATORS],
  fencing: [['settings'], OF_MODULE],
  shutdownGraceMs: [['settings'], OF_MODULE],
  slowWaitMs: [['settings'], OF_MODULE],
  slowHoldMs: [['settings'], OF_MODULE],
  appName: [['settings'], OF_MODULE],
  holderInfo: [['settings'], OF_MODULE],
  redactKey: [['settings'], OF_MODULE],
  redis: [['service'], OF_MODULE],
  store: [['service'], OF_MODULE],
  interceptor: [['module'], OF_MODULE],
  maxWaitMs: [['cap'], OF_TESTING],
  context: [['module', 'testing'], OF_MODULE],
  leaders: [['module'], OF_MODULE],
  takenStatus: [['interceptor'], OF_INTERCEPTOR],
  retryAfterSeconds: [['interceptor'], OF_INTERCEPTOR],
  name: [[], `${OF_MODULE}, and with forRootAsync it stands beside the factory: forRootAsync({ name, useFactory })`],
  names: [[], `${OF_TESTING}, and with forRootAsync it stands beside the factory: forRootAsync({ names, useFactory })`],
  commandTimeoutMs: [[], OF_REDIS],
  replicas: [[], OF_REDIS],
  shardedPubSub: [[], OF_REDIS],
  foreignHold: [[], OF_REDIS],
  delayAfterRestartMs: [[], OF_QUORUM],
} as const satisfies Readonly<Record<string, readonly [groups: readonly Group[], home: string]>>; // prettier-ignore

type Table = typeof OPTIONS;

/** Names of the options of some groups. */
type NamesIn<G extends Group> = {
  readonly [Name in keyof Table as G & Table[Name][0][number] extends never ? never : Name]: true;
};

/** Returns the names of all options of some groups. `satisfies Names<Options>` makes a forgotten one a compile error. */
export const namesOf = <G extends Group>(...groups: readonly G[]): NamesIn<G> => {
  const rows = Object.entries<readonly [readonly Group[], string]>(OPTIONS);
  const own = rows.filter(([, [of]]) => groups.some((group) => of.includes(group)));
  return Object.fromEntries(own.map(([name]) => [name, true])) as NamesIn<G>;
};

/** Returns where an option belongs, for a message; undefined for a name that is no option. */
export const homeOf = (name: string): string | undefined =>
  Object.hasOwn(OPTIONS, name) ? OPTIONS[name as keyof Table][1] : undefined;
