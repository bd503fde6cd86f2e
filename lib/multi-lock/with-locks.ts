import { LockConfigurationError, LockKeyError } from '../core/errors/lock.errors.js';
import type { SectionOptions, Without } from '../core/settings/acquire-options.js';
import { oneKindOf } from '../core/acquire/keys-of-call.js';
import { checkOneKey, elementsOf } from '../key/key-check.js';
import { checkedSection, type LockService } from '../lock.service.js';
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
  readonly call: ReturnType<LockService['callOfSection']>;
}

/** Each key of each service once, in an order that is the same in all processes: by key, then by the module's name. */
const inOrder = (locks: readonly LockOfService[], options: ForSection): readonly WantedLock[] => {
  if (!Array.isArray(locks) || locks.length === 0) {
    throw new LockConfigurationError('withLocks needs a list of { service, key } with one lock at least.');
  }
  const once: WantedLock[] = [];
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
    const at = once.findIndex((one) => one.service === service && one.key === key);
    if (at === -1) once.push({ service, key, call });
    else once[at] = { service, key, call: { ...call, kind: oneKindOf(key, once[at]!.call.kind, call.kind) } };
  }
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return once.sort((a, b) => compare(a.key, b.key) || compare(a.service.moduleName, b.service.moduleName));
};

const giveBack = async (parts: readonly PartOfLease[]): Promise<void> => {
  await Promise.all(parts.map(({ lease }) => lease[Symbol.asyncDispose]()));
};

/** The half of a read-write lock that is wanted, if it is one. */
const modeOf = ({ kind }: WantedLock['call']): { mode?: 'read' | 'write' } =>
  kind === 'read' || kind === 'write' ? { mode: kind } : {};

/** All or none: what was taken is given back when one of them cannot be had. */
const takeAll = async (
  locks: readonly WantedLock[],
  waitMs: number,
  { onLost: _onLost, awaitRelease: _awaitRelease, ...options }: ForSection,
): Promise<MultiLease> => {
  const parts: PartOfLease[] = [];
  const startedAt = performance.now();
  try {
    for (const { service, key, call } of locks) {
      const spentMs = parts.length === 0 ? 0 : Math.round(performance.now() - startedAt);
      const left = { ...options, ...modeOf(call), waitMs: Math.max(0, waitMs - spentMs) };
      parts.push({ service, key, lease: await service.acquire(key, left) });
    }
    const { leaseMs } = options;
    // The first has been held for as long as the others were waited for. A lock of a call around this one keeps its own lease.
    if (leaseMs !== undefined && parts.length > 1) {
      const taken = parts.filter(({ lease }) => lease.parts.every(({ entry }) => !entry));
      await Promise.all(taken.map(({ lease }) => lease.extend(leaseMs)));
    }
    return new MultiLease(parts);
  } catch (error) {
    await giveBack(parts);
    throw error;
  }
};

/**
 * Takes locks of several services (modules with a name and a Redis of their own), all or none, runs `section`, and
 * releases them, whatever happens. One service alone does that by `withLock(['a', 'b'], …)`. They are taken one after the
 * other, in an order that is the same for all callers: by key, then by the module's name. So callers of `withLocks` cannot
 * deadlock each other, however they list their locks. One that is listed in both modes is taken to write.
 *
 * Options: those of `withLock`. `waitMs` counts for all together; what is left of it when a lock is asked for is that
 * lock's. A fixed `leaseMs` counts from when all are held. Where modules differ in their defaults, the longest `waitMs`
 * counts, `onLost: 'throw'` of one, and `awaitRelease: false` only of all. A lock that is lost does not end the others:
 * `lease.signal` aborts, and `lease.loss` says which it was.
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
  const waitMs = Math.max(...calls.map((call) => call.waitMs));
  const all = await takeAll(ordered, waitMs, options);
  let result: T;
  try {
    const inside = all.parts.reduceRight<() => Promise<T>>(
      (run, { lease }) =>
        () =>
          lease.run(run),
      async () => section(all),
    );
    result = await inside();
  } finally {
    const released = giveBack(all.parts);
    if (calls.some(({ awaitRelease }) => awaitRelease)) await released;
  }
  if (all.loss && calls.some(({ onLost }) => onLost === 'throw')) throw all.loss;
  return result;
}
