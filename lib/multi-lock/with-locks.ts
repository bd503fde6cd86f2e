import { LockConfigurationError, LockKeyError } from '../core/errors/lock.errors.js';
import type { SectionOptions, Without } from '../core/settings/acquire-options.js';
import type { LockCall } from '../core/settings/lock-call.js';
import { oneKindOf } from '../core/acquire/keys-of-call.js';
import { closeAll, currentSection, runInSection, type Section } from '../core/nesting/section.js';
import { checkOneKey, elementsOf } from '../key/key-check.js';
import { checkedSection } from '../call-arguments.js';
import type { LockService } from '../lock.service.js';
import { MultiLease, type PartOfLease } from './multi-lease.js';

/** A key of one lock service. */
export interface LockOfService {
  readonly service: LockService;
  /** Used verbatim; see `lockKey` for templates. */
  readonly key: string;
  /** Takes one half of a read-write lock of this key. Default: as the options say for all. */
  readonly mode?: 'read' | 'write' | undefined;
}

type ForSection = SectionOptions & Without<'onBusy' | 'service' | 'permits'>;

/** What runs while all of the locks are held. */
export type MultiSection<T> = (lease: MultiLease) => T | PromiseLike<T>;

const isService = (value: unknown): value is LockService =>
  typeof (value as Partial<LockService> | null | undefined)?.acquire === 'function';

const FIELDS: ReadonlySet<string> = new Set<keyof LockOfService>(['service', 'key', 'mode']);

/** One of the locks, with what the call asks of its service. */
interface WantedLock {
  readonly service: LockService;
  readonly key: string;
  readonly call: LockCall;
}

/** Each key of each service once, in an order that is the same in all processes: by key, then by the module's name. */
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
    const mode = given?.mode;
    const call = service.callOfSection(mode === undefined ? options : { ...options, mode });
    const ofService = ofServices.get(service) ?? new Map<string, WantedLock>();
    ofServices.set(service, ofService);
    const kind = oneKindOf(key, ofService.get(key)?.call.kind ?? call.kind, call.kind);
    ofService.set(key, { service, key, call: { ...call, kind } });
  }
  const once = [...ofServices.values()].flatMap((ofService) => [...ofService.values()]);
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return once.sort((a, b) => compare(a.key, b.key) || compare(a.service.moduleName, b.service.moduleName));
};

const giveBack = async (parts: readonly PartOfLease[]): Promise<void> => {
  await Promise.all(parts.map(({ lease }) => lease[Symbol.asyncDispose]()));
};

/** Waits for all, also when one of them fails; then rejects with the first failure. */
const allOf = async (promises: readonly Promise<void>[]): Promise<void> => {
  for (const ending of await Promise.allSettled(promises)) {
    if (ending.status === 'rejected') throw ending.reason;
  }
};

/** All or none: what was taken is given back when one of them cannot be had. */
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
    await giveBack(parts);
    throw error;
  }
};

/** Runs what has all the locks inside a section of each: the last of them is the innermost. */
const runInside = async <T>(all: MultiLease, section: MultiSection<T>): Promise<T> => {
  const open: Section[] = [];
  try {
    for (const { service, lease } of all.parts) {
      // A lease may be over before its section begins, because this process stood still.
      lease.mustBeHeld('run');
      open.push(service.openSection(lease, open.at(-1) ?? currentSection()));
    }
    return await runInSection(open.at(-1), section, all);
  } finally {
    await closeAll(open);
  }
};

/**
 * Takes locks of several services (modules with a name and a Redis of their own), all or none, runs `section`, and
 * releases them, whatever happens. One service alone does that by `withLock(['a', 'b'], …)`. They are taken one after the
 * other, in an order that is the same for all callers: by key, then by the module's name. So callers of `withLocks` cannot
 * deadlock each other, however they list their locks. One that is listed in both modes is taken to write.
 *
 * Options: those of `withLock`. `waitMs` counts for all together; what is left of it when a lock is asked for is that
 * lock's. A fixed `leaseMs` and `holdAtLeastMs` count from when all are held; until then all are renewed. Where modules
 * differ in their defaults, the longest `waitMs` counts, `onLost: 'throw'` of one, and `awaitRelease: false` only of all.
 * A lock that is lost does not end the others: `lease.signal` aborts, and `lease.loss` says which it was.
 *
 * Throws like `withLock`, for the first lock that cannot be had; the others are given back by then.
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
    const released = giveBack(all.parts);
    if (calls.some(({ awaitRelease }) => awaitRelease)) await released;
  }
  if (all.loss && calls.some(({ onLost }) => onLost === 'throw')) throw all.loss;
  return result;
}
