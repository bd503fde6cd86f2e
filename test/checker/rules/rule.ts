import type { Expectations } from '../expectations.js';
import type { Past } from '../past.js';
import type { Violation } from '../violation.js';

/** Looks for one kind of violation. */
export type Rule = (past: Past, expectations: Expectations) => Iterable<Violation>;

export const ms = (time: number): string => `${Math.round(time * 10) / 10} ms`;
