import { expect, it } from 'vitest';
import { resolveOptions } from '../../../lib/nest/module/redis-lock.options.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { PLACES } from './places.js';
import { expectRefusal, messageOf, outcomeOf } from './refusal.js';

const OF_REDIS = 'It is one of RedisStore: forRoot({ store: new RedisStore';

/** What the error of an option says beside its name and what it must be. */
const ADVICE: readonly (readonly [place: string, options: object, text: string])[] = [
  // A misspelt option.
  ['@Locked', { wait: 5 }, 'wait is no option of @Locked. Did you mean waitMs?'],
  ['@Locked', { waitMS: 5 }, 'Did you mean waitMs?'],
  ['@Locked', { lease: 5 }, 'Did you mean leaseMs?'],
  ['@Locked', { holdAtLeast: 5 }, 'Did you mean holdAtLeastMs?'],
  ['@Locked', { onbusy: 'skip' }, 'Did you mean onBusy?'],
  ['@Locked', { ttl: 5 }, 'ttl is no option of @Locked. Its options are waitMs,'],
  ['@Limited', { permit: 3 }, 'permit is no option of @Limited. Did you mean permits?'],
  ['acquire', { wait: 5 }, 'Did you mean waitMs?'],
  ['withLock', { inSide: [] }, 'Did you mean inside?'],
  ['withLock', { timeout: 5 }, 'timeout is no option of withLock. Its options are waitMs, leaseMs'],
  ['semaphore.tryAcquire', { wait: 1 }, 'Did you mean waitMs?'],
  ['RedisLockModule.forRoot', { prefix: 'x' }, 'prefix is no option of RedisLockModule. Its options are'],
  ['RedisLockModule.forRoot', { keyprefix: 'x' }, 'Did you mean keyPrefix?'],
  ['RedisLockModule.forRoot', { wait: 5 }, 'Did you mean waitMs?'],
  ['RedisLockModule.forRoot', { watchDogMS: 5_000 }, 'Did you mean watchdogMs?'],
  ['RedisLockModule.forRoot, interceptor', { takenstatus: 409 }, 'Did you mean takenStatus?'],
  ['RedisLockModule.forRoot, interceptor', { status: 409 }, 'status is no option of interceptor'],
  // An option of another place.
  ['@Locked', { keyPrefix: 'x' }, 'It is one of RedisLockModule.forRoot()'],
  ['@Locked', { name: 'billing' }, 'It is one of RedisLockModule.forRoot()'],
  ['@Locked', { permits: 3 }, 'permits is no option of @Locked. It is one of @Limited'],
  [
    '@Locked',
    { inside: {} },
    'It is one of withLock, tryWithLock, acquire and tryAcquire; a method with @Locked is',
  ],
  [
    'withLocks',
    { inside: {} },
    'inside is no option of withLocks. It is one of withLock, tryWithLock, acquire',
  ],
  ['@Limited', { mode: 'fair' }, 'It is one of @Locked'],
  ['acquire', { onLost: 'throw' }, 'It is one of @Locked, of @Limited, of withLock'],
  ['acquire', { awaitRelease: false }, 'It is one of @Locked, of @Limited, of withLock'],
  ['acquire', { onBusy: 'skip' }, 'It is one of @Locked'],
  ['acquire', { service: 'billing' }, 'It is one of @Locked'],
  ['withPermit', { mode: 'fair' }, 'mode is no option of withPermit. It is one of @Locked, withLock'],
  ['RedisLockModule.forRoot', { holdAtLeastMs: 5 }, 'It is one of @Locked'],
  ['RedisLockModule.forRoot', { onBusy: 'skip' }, 'It is one of @Locked'],
  ['RedisLockModule.forRoot', { isGlobal: true }, 'The module is global in any case'],
  [
    'RedisLockModule.forRoot',
    { takenStatus: 409 },
    'It is one of RedisLockModule.forRoot(), in its interceptor',
  ],
  ['createLockService', { waitMS: 5 }, 'waitMS is no option of createLockService. Did you mean waitMs?'],
  ['createLockService', { interceptor: true }, 'It replies for the handlers of a Nest app'],
  ['createLockService', { context: () => ({}) }, 'It is for the keys of @Locked.'],
  ['createLockService', { name: 'billing' }, 'It tells the modules of one app apart.'],
  ['RedisLockModule.forRoot', { commandTimeoutMs: 500 }, OF_REDIS],
  ['RedisLockModule.forRoot', { replicas: { min: 1 } }, OF_REDIS],
  ['RedisLockModule.forRoot', { shardedPubSub: true }, OF_REDIS],
  ['RedisLockModule.forRoot', { foreignHold: 'taken' }, OF_REDIS],
  [
    'RedisLockModule.forRoot',
    { delayAfterRestartMs: 0 },
    'It is one of QuorumStore: forRoot({ store: new Qu',
  ],
  ['RedisLockTestingModule.forRoot', { wait: 0 }, 'Did you mean waitMs?'],
  ['RedisLockTestingModule.forRoot', { redis: 'redis://localhost' }, 'It is one of RedisLockModule'],
  // A value with more than one thing to say.
  ['RedisLockTestingModule.forRoot', { names: 'billing' }, 'names must be an array of names'],
  ['withLock', { waitMs: '1000' }, 'milliseconds from 0 to 31622400000, or Infinity, but is "1000".'],
  ['RedisLockModule.forRoot', { keyPrefix: 7 }, 'keyPrefix must be a string, but is 7.'],
  ['RedisLockModule.forRoot', { keyPrefix: '\ud800' }, 'keyPrefix must be well-formed UTF-16'],
  ['RedisLockModule.forRoot', { interceptor: 'yes' }, 'interceptor must be true, false, or an object'],
  ['RedisStore', { replicas: 1 }, 'replicas must be an object such as'],
  ['RedisStore', { replicas: {} }, 'replicas.min must be a whole number from 1 to 100'],
  ['MemoryStore', { shared: {} }, 'shared must be a MemorySpace'],
  // Two options that exclude each other.
  ['@Locked', { onBusy: 'skip', waitMs: 2_000 }, "onBusy: 'skip' does not wait, so waitMs: 2000 cannot go"],
  ['@Locked', { onBusy: 'skip', waitMs: Infinity }, "onBusy: 'skip' does not wait, so waitMs: Infinity"],
  ['@Limited', { onBusy: 'skip', waitMs: 5 }, "onBusy: 'skip' does not wait"],
  [
    '@Locked',
    { oncePerMs: 1, onBusy: () => 1 },
    "Orders.pay: onBusy must be 'skip' or left out with oncePerMs",
  ],
  ['@Locked', { oncePerMs: 1, waitMs: 5 }, 'Orders.pay: waitMs must be left out with oncePerMs'],
  ['withLock', { oncePerMs: 1, waitMs: 5 }, 'waitMs must be left out with oncePerMs'],
  ['withLock', { oncePerMs: 1, leaseMs: 5 }, 'Both leaseMs and oncePerMs are given'],
  ['withLock', { oncePerMs: 1, holdAtLeastMs: 5 }, 'Both holdAtLeastMs and oncePerMs are given'],
  ['withLock', { oncePerMs: 1, mode: 'read' }, 'mode must be'],
  ['RedisLockModule.forRoot', { redis: 'redis://127.0.0.1:1' }, 'Both redis and store'],
  ['RedisLockModule.forRoot', { store: undefined }, 'Neither redis nor store'],
  [
    'createLockService',
    { store: undefined },
    'Neither redis nor store is given: createLockService({ redis: ',
  ],
];

it.each(ADVICE)('%s with %o says "%s"', async (title, options, text) => {
  const place = PLACES.find((one) => one.title === title)!;
  const outcome = await outcomeOf(() => place.give({ ...place.needs, ...options } as never));
  expectRefusal(outcome, Object.keys(options)[0]!);
  expect(messageOf(outcome)).toContain(text);
});

const peekMany = (): Promise<readonly number[]> => Promise.resolve([]);
const polled = (poll: object): object => ({
  ...{ acquire: peekMany, extendMany: peekMany, release: peekMany },
  traits: { poll },
});

/** A store that lacks some members, and the first of them as the error names it. */
const LACKING: readonly (readonly [missing: string, members: object])[] = [
  ['name', { name: undefined }],
  ['lease', { lease: { type: 'forever' } }],
  ['commandTimeoutMs', { commandTimeoutMs: '500' }],
  ['open', { open: undefined }],
  ['lease.timeoutMs', { lease: { type: 'session' } }],
  ['kinds.exclusive', { kinds: { permit: {} } }],
  ['kinds.exclusive.acquire', { kinds: { exclusive: {} } }],
  ['kinds.exclusive.peekMany', { kinds: { exclusive: polled({ minMs: 5, maxMs: 50, liveMaxMs: 250 }) } }],
  ['kinds.exclusive.traits.poll.maxMs', { kinds: { exclusive: { ...polled({ minMs: 5 }), peekMany } } }],
];

it.each(LACKING)('a store without %s is refused, and the error names it', (missing, members) => {
  const store = Object.create(new MemoryStore(), Object.getOwnPropertyDescriptors(members)) as MemoryStore;
  expect(() => resolveOptions({ store })).toThrow(` but is an object without ${missing}.`);
});

it('a store needs no method that its kinds may leave out', () => {
  const { acquire, extendMany, release } = new MemoryStore().kinds.exclusive;
  const kinds = { exclusive: { acquire, extendMany, release } };
  const store = Object.create(new MemoryStore(), { kinds: { value: kinds } }) as MemoryStore;
  expect(resolveOptions({ store }).store).toBe(store);
});
