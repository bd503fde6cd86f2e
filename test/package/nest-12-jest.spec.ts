import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeProgram } from '../../.ci/matrix/provide.mjs';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { runJest } from './support/jest.js';

const VM_MODULES = ['--experimental-vm-modules'];
const WITHOUT_NEST = 'the subpaths without Nest are required';
const NEEDS_NEST = ['Nest is required', 'the library is required'];

describe('a Nest 12 app under Jest 30', { timeout: RUN_TIMEOUT_MS }, () => {
  let app: ConsumerApp;
  const programs = new Map<number, string>();

  beforeAll(async () => {
    for (const major of [20, 24]) programs.set(major, nodeProgram(major).node);
    app = await ConsumerApp.install('nest-12-jest', 'jest');
    await app.compile();
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => app?.[Symbol.asyncDispose]());

  it.each([20, 24])('runs its unit tests as ES modules on Node %s', async (major) => {
    const program = programs.get(major);
    const { passed, failed } = await runJest(app, { program, flags: VM_MODULES, folder: 'dist' });
    expect(failed).toEqual({});
    expect(passed).toHaveLength(7);
    expect(passed.filter((name) => name.startsWith('OrderService '))).toHaveLength(6);
    expect(passed).toContain('import and require load one core');
  });

  it('runs tests in CommonJS on Node 24 with VM modules, where Jest can require an ES module', async () => {
    const program = programs.get(24);
    const { passed, failed } = await runJest(app, { program, flags: VM_MODULES, folder: 'commonjs' });
    expect(failed).toEqual({});
    expect(passed).toEqual([...NEEDS_NEST, WITHOUT_NEST].sort());
  });

  it.each([
    ['20', 20, VM_MODULES],
    ['24 without VM modules', 24, []],
  ])(
    'runs in CommonJS on Node %s only what needs no Nest: Jest cannot require Nest itself there',
    async (...row) => {
      const [, major, flags] = row;
      const { passed, failed } = await runJest(app, {
        program: programs.get(major),
        flags,
        folder: 'commonjs',
      });
      expect(passed).toEqual([WITHOUT_NEST]);
      const reason: unknown = expect.stringMatching(
        /Must use import to load ES Module: .*\/@nestjs\/common\//,
      );
      expect(failed).toEqual(Object.fromEntries(NEEDS_NEST.map((name) => [name, reason])));
    },
  );
});
