import { AsyncResource } from 'node:async_hooks';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { AcquireOptions, SectionOptions } from '../../../lib/core/settings/acquire-options.js';
import type { LockService } from '../../../lib/nest/service/lock.service.js';
import { deferred } from '../../support/async.js';

/** How a lock is taken. */
export type Style = 'section' | 'acquire' | 'tryAcquire';

/** What an actor gets when it has taken a lock. */
export interface Opened {
  readonly lease: Lease;
  /** The inside of a section: what is run in it, is nested. Undefined for a lease by hand. */
  readonly inside: AsyncResource | undefined;
  /** Ends the section or releases the lease. A section gives `done`. */
  end(): Promise<'done' | 'released' | 'lost'>;
}

/** Opens a section, and keeps it open until it is told to end. Null when it was not to be had. */
const openSection = (
  run: (section: (lease: Lease) => Promise<'done'>) => Promise<'done'>,
): Promise<Opened> => {
  const opened = deferred<Opened>();
  const ended = deferred();
  const done = run(async (lease) => {
    const end = (): Promise<'done'> => {
      ended.resolve();
      return done;
    };
    opened.resolve({ lease, inside: new AsyncResource('section'), end });
    await ended.promise;
    return 'done';
  });
  done.catch((error: unknown) => opened.reject(error));
  return opened.promise;
};

const byHand = (lease: Lease): Opened => ({ lease, inside: undefined, end: () => lease.release() });

/** Takes keys in one of the styles; null when tryAcquire finds them taken. */
export const take = async (
  service: LockService,
  style: Style,
  keys: readonly string[],
  options: SectionOptions,
): Promise<Opened | null> => {
  if (style === 'section') return openSection((section) => service.withLock(keys, options, section));
  if (style === 'acquire') return byHand(await service.acquire(keys, options as AcquireOptions));
  const lease = await service.tryAcquire(keys, options as AcquireOptions);
  return lease && byHand(lease);
};

/** A section inside a lease that was taken by hand. */
export const runIn = (lease: Lease): Promise<Opened> => openSection((section) => lease.run(section));
