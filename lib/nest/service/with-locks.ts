import { LockConfigurationError, LockKeyError } from '../../core/errors/lock.errors.js';
import type { SectionOptions, Without } from '../../core/settings/acquire-options.js';
import type { ShowKey } from '../../core/util/shown-key.js';
import type { LockCall } from '../../core/settings/lock-call.js';
import { checkOwnMode, oneKindOf } from '../../core/acquire/keys-of-call.js';
import { currentSection, runInSection, type Section } from '../../core/nesting/section.js';
import { checkKeyMode, checkOneKey, elementsOf } from '../../key/key-check.js';
import { checkedSection } from './call-arguments.js';
import type { LockService } from './lock.service.js';
import { MultiLease, type PartOfLease } from './multi-lease.js';

/** Key of one lock service. */
export interface LockOfService {
  readonly service: LockService;
  /** Key, used verbatim; see `lockKey` for templates. */
  readonly key: string;
  /** Half of a read-write lock of this key. Default: the `mode` of the options. */
  readonly mode?: 'read' | 'write' | undefined;
}

type ForSection = SectionOptions & Without<'onBusy' | 'service' | 'permits' | 'oncePerMs' | 'inside'>;

/** Function that runs while all locks are held. */
export type MultiSection<T> = (lease: MultiLease) => T | PromiseLike<T>;

const isService = (value: unknown): value is LockService =>
  typeof (value as Partial<LockService> | null | undefined)?.callOfSection === 'function';

const FIELDS: ReadonlySet<string> = new Set<keyof LockOfService>(['service', 'key', 'mode']);

/** One of the locks, with the resolved options of its service. */
interface WantedLock {
  readonly service: LockService;
  readonly key: string;
  readonly call: LockCall;
}

/**
 * Returns each key of each service once, in an order that is the same in all processes: by key, then by where the store
 * of the service keeps its locks.
 */
const inOrder = (locks: readonly LockOfService[], options: ForSection): readonly WantedLock[] => {
  if (!Array.isArray(locks) || locks.length === 0) {
    throw new LockConfigurationError('withLocks needs a list of { service, key } with one lock at least.');
  }
  const ofServices = new Map<LockService, Map<string, WantedLock>>();
  for (const [i, given] of (locks as readonly (Partial<LockOfService> | undefined)[]).entries()) {
    const service: unknown = given?.service;
    if (!isService(service)) {
      throw new LockConfigurationError(`withLocks: the service of lock ${i + 1} is no LockService.`);
    }
    const unknown = Object.keys(given!).find((name) => !FIELDS.has(name));
    if (unknown !== undefined) {
      throw new LockConfigurationError(
        `withLocks: lock ${i + 1} is { service, key, mode? }, and has no ${JSON.stringify(unknown)}. ` +
          'Options are given for all of them: withLocks(locks, options, fn).',
      );
    }
    if (elementsOf(given?.key)) {
      throw new LockKeyError(
        `withLocks: lock ${i + 1} has a list of keys. Give each key an entry of its own.`,
      );
    }
    const key = checkOneKey(given?.key, 'each lock of withLocks');
    const shown: ShowKey = (one) => service.shown(one);
    const mode = checkKeyMode(given?.mode);
    const call = service.callOfSection(mode === undefined ? options : { ...options, mode });
    if (mode !== undefined) checkOwnMode(key, call.kind, options.mode, shown);
    const ofService = ofServices.get(service) ?? new Map<string, WantedLock>();
    ofServices.set(service, ofService);
    const kind = oneKindOf(key, ofService.get(key)?.call.kind ?? call.kind, call.kind, shown);
    ofService.set(key, { service, key, call: { ...call, kind } });
  }
  const once = [...ofServices.values()].flatMap((ofService) => [...ofService.values()]);
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return once.sort((a, b) => compare(a.key, b.key) || compare(a.service.order, b.service.order));
};

const releaseAll = async (parts: readonly PartOfLease[]): Promise<void> => {
  await Promise.all(parts.map(({ lease }) => lease[Symbol.asyncDispose]()));
};

/** Waits for all promises, also when one fails; then rejects with the first failure. */
const allOf = async (promises: readonly Promise<void>[]): Promise<void> => {
  for (const ending of await Promise.allSettled(promises)) {
    if (ending.status === 'rejected') throw ending.reason;
  }
};

/** Acquires all locks or none: if one fails, the acquired ones are released. */
const takeAll = async (locks: readonly WantedLock[], waitMs: number): Promise<MultiLease> => {
  const parts: PartOfLease[] = [];
  const held: (() => Promise<void>)[] = [];
  const startedAt = performance.now();
  try {
    for (const { service, key, call } of locks) {
      const spentMs = parts.length === 0 ? 0 : Math.round(performance.now() - startedAt);
      const left = { ...call, waitMs: Math.max(0, waitMs - spentMs) };
      const { lease, allHeld } = await service.acquireOneOfSeveral(key, left, locks.length === 1);
      parts.push({ service, key, lease });
      held.push(allHeld);
    }
    await allOf(held.map((allHeld) => allHeld()));
    return new MultiLease(parts);
  } catch (error) {
    await releaseAll(parts);
    throw error;
  }
};

/** Runs the section inside a section of each lock; the last lock is the innermost. */
const runInside = async <T>(all: MultiLease, section: MultiSection<T>): Promise<T> => {
  const open: Section[] = [];
  try {
    for (const { service, lease } of all.parts) {
      // A lease may end before its section begins, because this process was paused.
      lease.mustBeHeld('run');
      open.push(service.openSection(lease, open.at(-1) ?? currentSection()));
    }
    return await runInSection(open.at(-1), section, all);
  } finally {
    for (const section of open.reverse()) section.close();
    const leases = all.parts.map(({ lease }) => lease);
    // A nested call of one lease may still enter another one.
    for (let nested; (nested = leases.find(({ entered }) => entered));) await nested.entered?.emptied();
    for (const lease of leases) lease.close();
  }
};

/**
 * Acquires locks of several services (modules with their own name and Redis), all or none. Then it runs `section`, and
 * releases the locks, also when `section` throws. For one service use `withLock(['a', 'b'], …)`.
 *
 * The locks are acquired one after the other, ordered by key, then by the address of the store. The order is the same for
 * all callers, so callers of `withLocks` cannot deadlock each other. A key listed in both modes is acquired for writing.
 *
 * It takes the options of `withLock`:
 * - `waitMs` is the time limit for all locks together.
 * - A fixed `leaseMs` and `holdAtLeastMs` count from when all locks are held; until then all leases are renewed.
 * - If the modules have different defaults, the longest `waitMs` applies. `onLost: 'throw'` applies if one module has
 *   it, `awaitRelease: false` only if all have it.
 *
 * `currentLease()` in the section is the lease of the last lock. A call for one of the keys in it is an ordinary caller; a
 * nested call is made with `lease.of(service, key).call(…)`.
 *
 * If one lock is lost, the others stay held: `lease.signal` aborts, and `lease.loss` names the lost key.
 *
 * Throws the errors of `withLock`, for the first lock that fails. The acquired locks have been released by then.
 *
 * @example
 * await withLocks([{ service: stock, key: 'sku:7' }, { service: billing, key: 'invoice:42' }], { waitMs: 2_000 }, () => move());
 */
export function withLocks<T>(locks: readonly LockOfService[], section: MultiSection<T>): Promise<T>;
export function withLocks<T>(
  locks: readonly LockOfService[],
  options: ForSection | undefined,
  section: MultiSection<T>,
): Promise<T>;
export async function withLocks<T>(
  locks: readonly LockOfService[],
  optionsOrSection: ForSection | MultiSection<T> | undefined,
  maybeSection?: MultiSection<T>,
): Promise<T> {
  if (typeof optionsOrSection === 'function' && maybeSection !== undefined) {
    throw new LockConfigurationError(
      'withLocks takes its options before the section: withLocks(locks, options, fn).',
    );
  }
  const [options, section] =
    typeof optionsOrSection === 'function' ? [{}, optionsOrSection] : [optionsOrSection ?? {}, maybeSection];
  if (typeof section !== 'function') {
    throw new LockConfigurationError('withLocks needs a function to run: withLocks(locks, options, fn).');
  }
  const ordered = inOrder(locks, options);
  checkedSection('withLocks', section);
  const calls = ordered.map(({ call }) => call);
  const waitMs = calls.reduce((longest, call) => Math.max(longest, call.waitMs), 0);
  const all = await takeAll(ordered, waitMs);
  let result: T;
  try {
    result = await runInside(all, section);
  } finally {
    const released = releaseAll(all.parts);
    if (calls.some(({ awaitRelease }) => awaitRelease)) await released;
  }
  if (all.loss && calls.some(({ onLost }) => onLost === 'throw')) throw all.loss;
  return result;
}
