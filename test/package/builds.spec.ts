import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { execute, node } from '../support/package/command.js';
import { ConsumerApp, INSTALL_TIMEOUT_MS, RUN_TIMEOUT_MS } from './support/consumer-app.js';

/** ncc takes in all of Nest. */
const STEP_TIMEOUT_MS = 2 * RUN_TIMEOUT_MS;

/** Cases of the app whose key has the name of a parameter. */
const NAMED = ['named', 'withDefault', 'readsArguments', 'path'];
const OTHERS = [
  ...['index', 'keyFunction', 'promise', 'generator', 'limitedGenerator', 'iterable'],
  ...['subscribed', 'piped', 'flattened', 'awaited', 'limitedObservable'],
];
const UNREAD = ['unread', 'pipedAndUnread'];

const each = (cases: readonly string[], result: unknown) =>
  Object.fromEntries(cases.map((name) => [name, result]));

/** Each result is what was held, and an argument. Nothing is held after a case. */
const expected = (named: unknown = 'order:a 1') => ({
  ...each(NAMED, named),
  ...each(OTHERS, 'order:a 1'),
  ...each(UNREAD, 'nothing'),
});

const refused = (reason: string): unknown =>
  expect.stringMatching(new RegExp(`^LockKeyError: .*<<order.*>>.*${reason}.*<<0>>, or a key function`));

describe('an app', { timeout: 2 * STEP_TIMEOUT_MS }, () => {
  let app: ConsumerApp;

  beforeAll(async () => {
    app = await ConsumerApp.install('builds');
  }, INSTALL_TIMEOUT_MS);
  afterAll(() => app?.[Symbol.asyncDispose]());

  const options = () => ({ cwd: app.path(), timeoutMs: STEP_TIMEOUT_MS, env: { NO_COLOR: '1' } });

  const built = async (build: string): Promise<unknown> => {
    await node(['build.mjs', build], options());
    const { stdout, stderr } = await node([`dist/${build}/main.js`], options());
    expect(stderr).toBe('');
    return JSON.parse(stdout) as unknown;
  };

  it.each([
    ...['tsc ES2023', 'tsc ES2017', 'tsc ES2015', 'swc es2022', 'swc es2017', 'swc es2015', 'swc es5'],
    ...['babel node 20', 'babel chrome 50', 'esbuild node20', 'esbuild es2016'],
    ...['webpack development', 'ncc', 'bun build'],
  ])('locks every method as written when it is built with %s', async (build) => {
    expect(await built(build)).toEqual(expected());
  });

  it.each(['swc minified', 'esbuild minified', 'webpack production', 'ncc minified', 'bun minified'])(
    'refuses names of parameters, and locks everything else, when it is built with %s',
    async (build) => {
      expect(await built(build)).toEqual(expected(refused('which is no parameter of the method')));
    },
  );

  it('refuses names of parameters, and names their compiler, when it is built with Babel for ES5', async () => {
    expect(await built('babel es5')).toEqual(expected(refused('cannot be read .*Babel for ES5')));
  });

  it.each<[string, () => [program: string, ...args: string[]]]>([
    ['tsx', () => [process.execPath, '--import', 'tsx']],
    ['Bun', () => [app.path(`node_modules/@oven/bun-${process.platform}-${process.arch}/bin/bun`)]],
    [
      'Deno',
      () => [
        app.path('node_modules/@deno', readdirSync(app.path('node_modules/@deno'))[0]!, 'deno'),
        'run',
        '-A',
      ],
    ],
  ])('locks every method as written when %s runs its source', async (_name, command) => {
    const [program, ...args] = command();
    const { stdout } = await execute(program, [...args, 'src/main.ts'], options());
    expect(JSON.parse(stdout)).toEqual(expected());
  });
});
