import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { TestWorker } from '../../support/worker.js';
import type { FromPatient, PatientSetup, ToPatient } from '../workers/patient.worker.js';
import { BOOT_MS, Lab } from './lab.js';

const WORKER = new URL('../workers/patient.worker.ts', import.meta.url);
const SECOND = 1_000;

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterAll(() => lab[Symbol.asyncDispose]());

/*
 * The demo of source C4, in its own numbers: five workers ask at the same moment, each is patient for five seconds
 * and works for four. The first works from 0 to 4, the second gets the lock at 4 and works until 8, and the patience
 * of the three others ends at 5.
 *
 * Five processes, one Redis, the wake-ups and scripts of production: only the clock of the processes is told to them
 * by this test. It moves on when everything that belongs to the moment has happened, so one second between "the first
 * releases" and "patience ends" is enough on any machine, and the outcome cannot be another one by bad luck.
 */
describe('C4. five workers, five seconds of patience, four seconds of work', () => {
  it('two get the lock, three give up and leave nothing behind', async () => {
    const setup: PatientSetup = {
      redis: lab.server.url,
      key: 'demo',
      patienceMs: 5 * SECOND,
      workMs: 4 * SECOND,
    };
    const args = [JSON.stringify(setup)];
    const workers = Array.from({ length: 5 }, () =>
      TestWorker.start<ToPatient, FromPatient>(WORKER, { args }),
    );
    const count = (type: FromPatient['type']) => workers.flatMap((worker) => worker.all(type)).length;
    const outcome = () => ({ got: count('got it'), done: count('done'), gaveUp: count('gave up') });
    // Who works hears of it last, so that whoever takes over from him has the same time.
    const itIs = async (second: number) => {
      const works = (worker: (typeof workers)[number]) =>
        worker.all('got it').length > worker.all('done').length;
      for (const group of [workers.filter((worker) => !works(worker)), workers.filter(works)]) {
        for (const worker of group) worker.send({ type: 'time', ms: second * SECOND });
        await Promise.all(group.map((worker) => worker.next('told')));
      }
    };
    try {
      await Promise.all(workers.map((worker) => worker.next('ready', { timeoutMs: BOOT_MS })));
      for (const worker of workers) worker.send({ type: 'start' });
      await until(() => count('got it') === 1, { what: 'the first has the lock' });
      await lab.waiting('demo', 4);

      for (const second of [1, 2, 3]) await itIs(second);
      expect(outcome()).toEqual({ got: 1, done: 0, gaveUp: 0 });
      await itIs(4);
      // Two processes report it, in no order.
      await until(() => count('got it') === 2 && count('done') === 1, { what: 'the second has the lock' });
      expect(outcome()).toEqual({ got: 2, done: 1, gaveUp: 0 });

      await itIs(5);
      await until(() => count('gave up') === 3, { what: 'three have given up' });
      // Those who gave up have left: there is the hold of the one who works, and of all listeners only he.
      expect(await lab.hold('demo')).not.toBeNull();
      await until(async () => (await lab.listeners('demo')) === 1, { what: 'three have stopped listening' });
      for (const second of [6, 7]) await itIs(second);
      expect(outcome()).toEqual({ got: 2, done: 1, gaveUp: 3 });
      await itIs(8);
      await until(() => count('done') === 2, { what: 'the second has finished' });

      expect(outcome()).toEqual({ got: 2, done: 2, gaveUp: 3 });
      await lab.nothingLeft();
      for (const { code, usage } of workers.flatMap((worker) => worker.all('gave up'))) {
        expect(code).toBe('LOCK_TAKEN');
        expect(usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
      }
      const tokens = workers.flatMap((worker) => worker.all('got it')).map(({ token }) => token);
      expect(new Set(tokens).size).toBe(2);
      const exits = await Promise.all(workers.map((worker) => worker.finish()));
      expect(exits).toEqual(workers.map(() => ({ code: 0, signal: null })));
    } finally {
      await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
    }
  });
});
