import { expect } from 'vitest';
import type { Report } from '../apps/shared/report.js';

/** What has to be true of the report of every app. */
export const expectLocks = (report: unknown, build: 'esm' | 'cjs'): void => {
  const { tokens, served, refused, ...facts } = report as Report;
  expect(facts).toMatchObject({ build, mostInside: 1, leftInRedis: [], heldInRedis: { fields: 1 } });
  expect(facts.heardAtClose, 'who waits when the app closes').toBe('LOCK_SHUTDOWN');
  expect(facts.heldInRedis.ttlMs).toBeGreaterThan(0);

  expect(tokens).toHaveLength(10);
  expect(tokens, 'each holder has a greater token').toEqual([...new Set(tokens)].sort((a, b) => a - b));

  expect(served).toMatchObject({ status: 201, retryAfter: null });
  expect(served.body.token).toBeGreaterThan(tokens.at(-1)!);
  expect(refused).toMatchObject({ status: 423, retryAfter: '1', body: { code: 'LOCK_TAKEN' } });
};
