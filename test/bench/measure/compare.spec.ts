import { describe, expect, it } from 'vitest';
import { medianOf, rowOf, troubleOf, type Sample } from '../comparison.js';
import type { Contender } from '../contenders.js';
import type { Bench } from '../workload.js';
import { compare, ownViolations, type Plan } from './compare.js';

const OURS: Contender = { name: 'ours', subject: 'ours', style: 'lock', ours: true, renews: true };
const PEER: Contender = { name: 'peer', subject: 'peer', style: 'lock', renews: true };
const sample = (value: number | undefined, violations = 0): Sample => ({
  values: { rate: value },
  violations,
  failures: 0,
});

const run = async (plan: Partial<Plan> & Pick<Plan, 'measure'>) => {
  const order: string[] = [];
  const dismissed: string[] = [];
  const bench = {
    progress: { begin: () => undefined, step: () => undefined, end: () => undefined },
    crew: { dismissAllOf: async ({ name }: Contender) => void dismissed.push(name) },
  } as unknown as Bench;
  const comparison = await compare(bench, {
    title: 'a comparison',
    metrics: [{ key: 'rate', what: 'locks', unit: '/s', better: 'more' }],
    contenders: [OURS, PEER],
    axis: { what: 'callers', points: [1, 10, 100] },
    rounds: 2,
    ...plan,
    measure: (contender, at, round) => {
      order.push(`${contender.name} ${at}`);
      return plan.measure(contender, at, round);
    },
  });
  return { comparison, order, dismissed };
};

describe('comparing contenders', () => {
  it('goes through all of them there and back, at every point', async () => {
    const { order, comparison } = await run({ measure: async (_who, at, round) => sample(at + round) });
    expect(order.map((one) => one.split(' ')[0])).toEqual([
      ...['ours', 'ours', 'ours', 'peer', 'peer', 'peer'],
      ...['peer', 'peer', 'peer', 'ours', 'ours', 'ours'],
    ]);
    expect(medianOf(rowOf(comparison, 'peer', 10), 'rate')).toBe(10.5);
  });

  it('shows one that does not finish as such, from there on, and goes on with the others', async () => {
    const { order, comparison, dismissed } = await run({
      measure: async ({ name }, at) => {
        if (name === 'peer' && at === 10) throw new Error('nobody was served\nand more');
        return sample(1);
      },
    });
    expect(troubleOf(rowOf(comparison, 'peer', 10)!)).toBe('did not finish: nobody was served');
    expect(rowOf(comparison, 'peer', 100)!.broke).toBe(true);
    expect(order.filter((one) => one === 'peer 100')).toEqual([]);
    expect(order.filter((one) => one === 'ours 100')).toHaveLength(2);
    expect(dismissed).toEqual(['peer']);
    expect(troubleOf(rowOf(comparison, 'ours', 100)!)).toBeUndefined();
  });

  it('shows one that violates exclusion as such, and counts only ours against this repository', async () => {
    const { comparison } = await run({
      axis: undefined,
      measure: async ({ name }) => sample(1, name === 'peer' ? 3 : 0),
    });
    expect(troubleOf(rowOf(comparison, 'peer')!)).toBe('VIOLATES EXCLUSION (6 sections)');
    expect(ownViolations(comparison)).toBe(0);
    const own = await run({
      axis: undefined,
      measure: async ({ name }) => sample(1, name === 'ours' ? 1 : 0),
    });
    expect(ownViolations(own.comparison)).toBe(2);
  });
});
