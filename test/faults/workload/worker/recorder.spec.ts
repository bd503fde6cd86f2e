import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HistoryEvent } from '../../../checker/history.js';
import { Life } from '../../../../lib/stores/zookeeper/life.js';
import { coreUnderTest } from '../../../support/core/core-under-test.js';
import { granted } from '../../../support/core/scripted-store.js';
import { settled } from '../../../support/core/virtual-runtime.js';
import { SCRATCH } from '../../../support/scratch.js';
import { HistoryReader, HistoryWriter } from '../../history/history-file.js';
import { Recorder } from './recorder.js';

describe('the record of what the callers of a worker see', () => {
  let folder: string;
  let writer: HistoryWriter;
  let reader: HistoryReader;

  beforeEach(() => {
    folder = mkdtempSync(join(SCRATCH, 'nest-redis-lock-recorder-'));
    writer = new HistoryWriter(join(folder, 'history'));
    reader = new HistoryReader(join(folder, 'history'));
  });

  afterEach(() => {
    writer.close();
    reader.close();
    rmSync(folder, { recursive: true });
  });

  /** What is written when a lease is given out 40 ms after the question, of which the process has worked so many. */
  const record = async ({ workedMs = 0, marks = false, passMs = 0 }): Promise<readonly HistoryEvent[]> => {
    const { manager, store, runtime, call } = coreUnderTest();
    const taking = manager.acquire(['k'], call());
    await settled();
    await store.next('acquire').reply(granted());
    const lease = await taking;
    await runtime.pass(passMs);
    let [now, worked] = [100, 5];
    const recorder = new Recorder('w1', writer, { now: () => now, workedMs: () => worked });
    const name = recorder.call({ keys: ['k'], waitMs: 0, style: 'acquire' });
    now += 40;
    worked += workedMs;
    if (marks) recorder.mark();
    recorder.granted(name, lease, []);
    return reader.read();
  };

  it('tells of a loss that comes before anything listens for it', async () => {
    const announced = (await record({ passMs: 100_000 })).filter(({ type }) => type === 'announced');
    expect(announced).toEqual([{ type: 'announced', process: 'w1', lease: 'w1.L1', at: 140 }]);
  });

  const frozenIn = (events: readonly HistoryEvent[]) => events.filter(({ type }) => type === 'frozen');

  it('tells when the process had no processor between two events of one turn', async () => {
    const frozen = { type: 'frozen', process: 'w1', at: 100, until: 140, uninterrupted: true };
    expect(frozenIn(await record({}))).toEqual([frozen]);
    expect(frozenIn(await record({ workedMs: 30 }))).toEqual([frozen]);
  });

  it('but not when its own code was at work, or blocked it on purpose', async () => {
    expect(frozenIn(await record({ workedMs: 39.5 }))).toEqual([]);
    expect(frozenIn(await record({ marks: true }))).toEqual([]);
  });

  it('tells at once that a session goes on which was nearly over', async () => {
    const { manager, store, runtime, call } = coreUnderTest();
    const taking = manager.acquire(['k'], call());
    await settled();
    const session = new Life({ id: 1n, password: Buffer.alloc(16), timeoutMs: 4_000 }, runtime.now());
    await store.next('acquire').reply({ status: 'granted', validForMs: 4_000, session });
    const lease = await taking;
    const recorder = new Recorder('w1', writer, { now: () => runtime.now(), workedMs: () => runtime.now() });
    recorder.granted(recorder.call({ keys: ['k'], waitMs: 0, style: 'acquire' }), lease, []);
    const believed = session.validUntil;
    await runtime.pass(3_400);
    session.connected(runtime.now(), runtime.now());
    session.ending.abort();
    const ends = reader.read().flatMap((event) => (event.type === 'believes' ? [event.until] : []));
    expect(ends).toEqual([believed, session.validUntil].map(Math.floor));
  });
});
