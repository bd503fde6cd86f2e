import { makePlan } from './plan/make-plan.js';
import { simulate, expectationsFor } from './run/simulate.js';
import { violationsIn } from '../checker/checker.js';
import { timelineOf } from '../checker/timeline.js';
const [from, to] = process.argv.slice(2).map(Number);
const t = performance.now();
let events = 0;
const rules: Record<string, number[]> = {};
for (let seed = from!; seed < to!; seed++) {
  const plan = makePlan(seed);
  const history = await simulate(plan);
  events += history.length;
  const v = violationsIn(history, expectationsFor(plan));
  for (const rule of new Set(v.map((x) => x.rule))) (rules[rule] ??= []).push(seed);
  if (to! - from! === 1) {
    console.log(JSON.stringify(plan, null, 1));
    console.log(timelineOf(history, v));
  }
}
console.log(
  (performance.now() - t) / (to! - from!),
  'ms per seed',
  events / (to! - from!),
  'events per seed',
);
for (const [r, s] of Object.entries(rules)) console.log(r, s.length, s.slice(0, 12).join(' '));
