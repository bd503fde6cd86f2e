import { describe, expect, it } from 'vitest';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { newEntry, queued } from '../../support/core/queue-entries.js';
import { granted, QueueStore, ScriptedStore, taken } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const KINDS: readonly (readonly [string, Partial<LockCall>])[] = [
  ['exclusive', {}],
  ['read', { kind: 'read' }],
  ['write', { kind: 'write' }],
  ['permit', { kind: 'permit', permits: 2 }],
  ['fair', { kind: 'fair' }],
];

describe.each(KINDS)('maxWaiters, %s', (kind, options) => {
  const under = (maxWaiters: number) => {
    const core = coreUnderTest({ maxWaiters }, kind === 'fair' ? new QueueStore() : new ScriptedStore());
    const take = (terms: Partial<LockCall> = {}) =>
      watched(core.manager.acquire(['k'], core.call({ ...options, ...terms })));
    const refuse = async (): Promise<void> => {
      const reply = kind === 'fair' ? queued(newEntry().entry) : taken();
      while (core.store.unanswered.some(({ name }) => name === 'acquire'))
        await core.store.next('acquire').reply(reply);
    };
    return { ...core, take, refuse };
  };
  const states = (callers: readonly { state: string }[]) => callers.map(({ state }) => state);

  it('lets as many wait for a hold of another process, and refuses the one that came last', async () => {
    const { take, refuse } = under(2);
    const callers = [take(), take(), take()];
    await settled();
    await refuse();
    expect(states(callers)).toEqual(['pending', 'pending', 'rejected']);
    const late = take();
    await settled();
    expect([callers[2]!.error, late.error]).toMatchObject([
      { code: 'LOCK_QUEUE_FULL' },
      { code: 'LOCK_QUEUE_FULL' },
    ]);
  });

  it.each([
    ['whose wait is aborted', { waitMs: 20_000 }],
    ['that only tries', { waitMs: 0 }],
  ])('is not used up by a caller %s while it asks', async (_, terms) => {
    const { take, refuse } = under(1);
    const abort = new AbortController();
    take({ ...terms, signal: abort.signal });
    await settled();
    const waiting = take();
    abort.abort();
    await settled();
    await refuse();
    expect(waiting.state).toBe('pending');
  });

  it('0 lets a caller ask, and wait for no hold of another process', async () => {
    const { take, refuse, store } = under(0);
    const refused = take();
    await settled();
    await refuse();
    expect(refused.error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    const next = take();
    await settled();
    await store.next('acquire').reply(granted());
    expect(next.state).toBe('fulfilled');
  });
});
