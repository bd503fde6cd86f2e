import { describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { WriteProbe } from './write-probe.js';

describe('the probe of writes', () => {
  it('tells of each change, and notes when writes were not accepted', async () => {
    let ports: readonly number[] | undefined = [1];
    let looks = 0;
    const changes: (readonly number[])[] = [];
    const probe = new WriteProbe(
      () => {
        looks++;
        return Promise.resolve(ports);
      },
      (to) => changes.push(to),
    );
    const lookedAgain = async (): Promise<void> => {
      const before = looks;
      await until(() => looks > before + 1);
    };
    await until(() => probe.ports);
    expect(changes).toEqual([]);
    ports = undefined;
    await until(() => !probe.ports);
    ports = [1];
    await until(() => probe.ports);
    ports = [2];
    await until(() => probe.ports?.includes(2));
    await lookedAgain();
    await probe.stop();
    expect(changes).toEqual([[1], [2]]);
    expect(probe.outages).toHaveLength(2);
    expect(probe.outages.every(({ from, to }) => from <= to)).toBe(true);
  });

  it('takes servers that do not reply for servers that accept no writes', async () => {
    const probe = new WriteProbe(
      () => Promise.reject(new Error('no reply')),
      () => undefined,
    );
    await probe.stop();
    expect(probe.ports).toBeUndefined();
    expect(probe.outages).toEqual([]);
  });
});
