import { describe, expect, it } from 'vitest';
import { historyText } from '../checker/history.js';
import { SIMULATED } from '../mistakes/index.js';
import { catchMistake, withMistake } from './mistakes/catch.js';
import { judge } from './run/judge.js';
import { reportOn } from './shrink/report.js';
import { shrink } from './shrink/shrink.js';

const TIMEOUT_MS = 120_000;

describe('a deliberate mistake is noticed', () => {
  it.each(SIMULATED)('$name', { timeout: TIMEOUT_MS }, async (mistake) => {
    const caught = await catchMistake(mistake);
    expect(caught?.rule, 'no rule noticed it').toBeDefined();
    expect((await judge(caught!.plan)).violations, 'without the mistake nothing is wrong').toEqual([]);
  });

  it('in at least twelve sorts of them', () => {
    expect(new Set(SIMULATED.map(({ name }) => name)).size).toBeGreaterThanOrEqual(12);
  });
});

describe('a plan that fails', () => {
  const mistake = SIMULATED.find(({ name }) => name === 'a nested call let in beside its sibling')!;

  it('is shrunk to a short one that breaks the same promise', { timeout: TIMEOUT_MS }, async () => {
    const { plan, rule } = (await catchMistake(mistake))!;
    await withMistake(mistake, async (variation) => {
      const before = await judge(plan, variation);
      const smallest = await shrink(plan, rule, variation);
      const after = await judge(smallest, variation);
      expect(after.violations.map((violation) => violation.rule)).toContain(rule);
      expect(JSON.stringify(smallest).length).toBeLessThan(JSON.stringify(plan).length / 2);
      expect(after.events.length).toBeLessThan(before.events.length / 2);
      expect(after.events.length).toBeLessThan(120);
      const again = await judge(smallest, variation);
      expect(historyText(again.events)).toBe(historyText(after.events));
    });
  });

  it('is told with its seed, its plan and a timeline that shows where it went wrong', async () => {
    const { plan, rule } = (await catchMistake(mistake))!;
    const report = await withMistake(mistake, (variation) => reportOn(plan, variation));
    expect(report).toContain(`Seed ${plan.seed} breaks the promise "${rule}"`);
    expect(report).toContain(`--seed ${plan.seed}`);
    expect(report).toMatch(/^ +\d+\.\d{3} {2}p\d +p\dc\d\.\d asks for "\w+" by/m);
    expect(report).toMatch(/^ +\d+\.\d{3} {2}!!!! +VIOLATION \(/m);
  });
});
