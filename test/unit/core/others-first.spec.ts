import { expect, it } from 'vitest';
import { OthersFirst } from '../../../lib/core/seam/others-first.js';
import type { ReleaseReply } from '../../../lib/core/seam/reply.js';
import { claimOn } from '../../support/core/queue-on.js';
import { released, unknown } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

/** A process that has sent a release of the key `k`, and the claims that it has sent since. */
const releasing = () => {
  const runtime = new VirtualRuntime();
  const othersFirst = new OthersFirst();
  const sent: string[] = [];
  let settles!: { reply: (reply: ReleaseReply) => void; fail: (failure: Error) => void };
  const reply = new Promise<ReleaseReply>((resolve, reject) => (settles = { reply: resolve, fail: reject }));
  reply.catch(() => undefined);
  void othersFirst.release('k', reply, runtime);
  const acquire = (owner: string, { key = 'k', waits = true } = {}): void =>
    void othersFirst.acquire({ ...claimOn(key, owner), waits }, () => Promise.resolve(sent.push(owner)));
  return { runtime, sent, acquire, ...settles };
};

it('an acquire behind a release of its process is sent 3 ms after the reply, if others wait', async () => {
  const { runtime, sent, acquire, reply } = releasing();
  acquire('during');
  await runtime.pass(1_000);
  reply(released(true));
  await runtime.pass(2);
  acquire('after');
  await settled();
  expect(sent).toEqual([]);
  await runtime.pass(1);
  expect(sent).toEqual(['during', 'after']);
  acquire('later');
  expect(sent).toHaveLength(3);
  expect(runtime.due).toEqual([]);
});

it('it is sent with the reply if no others wait, or the release fails', async () => {
  for (const end of ['reply', 'fail'] as const) {
    const { runtime, sent, acquire, reply, fail } = releasing();
    acquire('o');
    await settled();
    expect(sent).toEqual([]);
    if (end === 'reply') reply(released(false));
    else fail(unknown());
    await settled();
    expect([sent, runtime.timersSet]).toEqual([['o'], 0]);
  }
});

it('it is sent at once for another key, or if its caller does not wait', () => {
  const { sent, acquire } = releasing();
  acquire('other', { key: 'l' });
  acquire('hasty', { waits: false });
  expect(sent).toEqual(['other', 'hasty']);
});
