import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeProgram } from '../../.ci/matrix/provide.mjs';
import { execute } from '../support/package/command.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';
import { writeSnippets } from './support/page-in-app.js';

const ENV = { OTEL_LOGS_EXPORTER: 'none', OTEL_NODE_RESOURCE_DETECTORS: 'none' };

describe.each([
  { sdk: 2, major: 20, api: '1.9.', build: 'CommonJS' },
  { sdk: 3, major: 24, api: '1.10.', build: 'ESM' },
])(
  'an app in $build with SDK $sdk of OpenTelemetry on Node $major',
  { timeout: RUN_TIMEOUT_MS },
  ({ sdk, major, api }) => {
    let app: ConsumerApp;
    let report: { node: string; traces: unknown; metrics: Record<string, number> };

    beforeAll(async () => {
      const { node } = nodeProgram(major);
      app = await ConsumerApp.install(`opentelemetry-${sdk}`, 'opentelemetry');
      await writeSnippets(app, {
        page: 'docs/operations/telemetry.md',
        withText: '@opentelemetry/sdk-node',
        files: ['snippet.ts'],
      });
      await app.compile();
      const options = { cwd: app.path(), env: ENV, timeoutMs: 40_000 };
      const { stdout, stderr } = await execute(node, ['dist/main.js'], options);
      expect(stderr).toBe('');
      report = JSON.parse(stdout) as typeof report;
    }, INSTALL_TIMEOUT_MS);
    afterAll(() => app?.[Symbol.asyncDispose]());

    it('is installed with its version of the API, and the instrumentation fits into NodeSDK', async () => {
      expect(report.node).toMatch(new RegExp(`^${major}\\.`));
      expect((await app.version('@opentelemetry/api')).startsWith(api)).toBe(true);
      expect((await app.compile()).stdout).toBe('');
    });

    it('has spans that are parents of the work inside', () => {
      expect(report.traces).toEqual([
        [
          'pays',
          'lock.acquire order:<<id>> acquired 0',
          [
            'lock.hold order:<<id>> released 0',
            'query',
            'lock.acquire stock acquired 0',
            ['lock.hold stock released 0', 'query'],
          ],
        ],
        'lock.acquire acquire acquired 0',
        ['finds it taken', 'lock.acquire try LOCK_TAKEN 0'],
        ['loses it', 'lock.acquire withLock acquired 0', 'lock.hold withLock lost 2'],
      ]);
    });

    it('has metrics, and gauges that are zero in the end', () => {
      expect(report.metrics).toMatchObject({
        'redis_lock.wait_time order:<<id>> exclusive acquired': 1,
        'redis_lock.hold_time stock exclusive released': 1,
        'redis_lock.wait_time try exclusive LOCK_TAKEN': 1,
        'redis_lock.taken try': 1,
        'redis_lock.lost withLock force-unlocked': 1,
      });
      const gauges = Object.entries(report.metrics).filter(([name]) => /\.(waiting|held) /.test(name));
      expect(gauges.length).toBeGreaterThan(5);
      expect(gauges.filter(([, value]) => value !== 0)).toEqual([]);
    });
  },
);
