import { describe, expect, it } from 'vitest';
import type { AcquireOptions, SectionOptions } from '../../../lib/core/settings/acquire-options.js';
import { watched } from '../../support/core/core-under-test.js';
import { forAnyValue } from '../../support/property/any-value.js';
import { CALL_OPTIONS } from './meanings.js';
import { expectAccepted, expectRefusal, outcomeOf } from './refusal.js';
import { VirtualLocks } from './virtual-locks.js';

/** Options of one call, past what its types say. */
const loose = (options: SectionOptions): AcquireOptions => options;

const CALLS = {
  withLock: ({ locks }: VirtualLocks, options: SectionOptions) => locks.withLock('k', options, () => 'ran'),
  tryWithLock: ({ locks }: VirtualLocks, options: SectionOptions) =>
    locks.tryWithLock('k', options, () => 'ran'),
  acquire: ({ locks }: VirtualLocks, options: SectionOptions) => locks.acquire('k', loose(options)),
  tryAcquire: ({ locks }: VirtualLocks, options: SectionOptions) => locks.tryAcquire('k', loose(options)),
};

const OF_SECTIONS = ['onLost', 'awaitRelease'];

/** The calls that have an option; to the others it is foreign. */
const callsWith = (name: string): readonly Call[] =>
  OF_SECTIONS.includes(name) ? [CALLS.withLock, CALLS.tryWithLock] : Object.values(CALLS);

const each = Object.entries(CALL_OPTIONS);

type Call = (world: VirtualLocks, options: SectionOptions) => Promise<unknown>;

/** Every kind of call on a free key, with these options. */
const callWith = async (
  options: unknown,
  isAllowed: boolean,
  name: string,
  calls: readonly Call[] = Object.values(CALLS),
): Promise<void> => {
  for (const call of calls) {
    const outcome = await outcomeOf(() => call(new VirtualLocks(), options as SectionOptions));
    if (isAllowed) expectAccepted(outcome, name);
    else expectRefusal(outcome, name);
  }
};

describe('an option of a call', () => {
  it.each(each)('%s: a value does what it says, or is refused by name', async (name, option) => {
    await forAnyValue(option.examples, async (value) => {
      const options = { [name]: value };
      await callWith(options, value === undefined || option.allows(value), name, callsWith(name));
      if (option.allows(value)) await option.verify(new VirtualLocks(), options, value as never);
    });
  });

  it.each(each)('%s: an explicit undefined keeps the default', async (name, { verify, otherwise }) => {
    await verify(new VirtualLocks(), { [name]: undefined }, otherwise as never);
  });

  it('waitMs: an explicit undefined does not make tryAcquire wait', async () => {
    const world = new VirtualLocks();
    world.takeElsewhere('k');
    expect(await world.locks.tryAcquire('k', { waitMs: undefined })).toBeNull();
  });
});

describe('the signal of a call', () => {
  const lookalikes = [
    { aborted: false },
    { aborted: false, addEventListener: 7, removeEventListener: 7 },
    { aborted: false, addEventListener: () => undefined },
    { aborted: 'no', addEventListener: () => undefined, removeEventListener: () => undefined },
    new AbortController(),
    new EventTarget(),
    AbortSignal,
  ];

  it('that is none is refused by name', async () => {
    await forAnyValue(lookalikes, (signal) => callWith({ signal }, signal === undefined, 'signal'));
  });

  class HomeMade extends EventTarget {
    aborted = false;
    readonly reason: unknown = undefined;

    get signal(): AbortSignal {
      return this as unknown as AbortSignal;
    }

    abort(): void {
      this.aborted = true;
      this.dispatchEvent(new Event('abort'));
    }
  }

  it.each([AbortController, HomeMade])('of an %o ends the wait', async (Controller) => {
    const world = new VirtualLocks();
    const controller = new Controller();
    world.takeElsewhere('k');
    const waiting = watched(world.locks.acquire('k', { signal: controller.signal }));
    await world.runtime.pass(10);
    expect(waiting.state).toBe('pending');
    controller.abort();
    await world.runtime.pass(0);
    expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
  });
});

describe('the options of a call, as a whole', () => {
  const isEmpty = (value: unknown): boolean => {
    try {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      return !('waitMs' in value) && Object.values(value).every((one) => one === undefined);
    } catch {
      return false;
    }
  };

  it('are an object, or undefined; anything else is refused', async () => {
    await forAnyValue([5_000, 'k', () => 1, [1_000]], async (value) => {
      // A function in their place is the section of withLock.
      const calls = typeof value === 'function' ? [CALLS.acquire, CALLS.tryAcquire] : Object.values(CALLS);
      await callWith(value, value === undefined || isEmpty(value), 'options?', calls);
    });
  });
});
