import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { Copy } from '../support/package/copy.js';
import { repository } from '../support/package/pack.js';

const REPORT = 'docs/api/testing.api.md';

describe('npm run api', () => {
  let copy: Copy;

  const check = async (...args: readonly string[]): Promise<string> => {
    const options = { cwd: copy.folder, timeoutMs: 60_000 };
    return node(['.ci/api.mjs', ...args], options).then(
      ({ stdout }) => stdout,
      (error: unknown) => String(error),
    );
  };

  /** Changes the declarations that the entry point is made of. */
  const addToApi = async (declaration: string): Promise<void> => {
    const file = copy.path('dist/types/entries/testing.d.ts');
    await writeFile(file, `${await readFile(file, 'utf8')}\n${declaration}\n`);
  };

  beforeAll(async () => {
    copy = await Copy.of('.ci', '.changeset', 'docs/api', 'package.json', '.gitignore');
    await cp(join(repository, 'dist'), copy.path('dist'), { recursive: true });
    // One entry point is enough, and takes a quarter of the time.
    const manifest = JSON.parse(await readFile(copy.path('package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    manifest.exports = { './testing': manifest.exports['./testing'] };
    await writeFile(copy.path('package.json'), JSON.stringify(manifest));
    await copy.init();
  });
  afterAll(() => copy[Symbol.asyncDispose]());

  it(
    'refuses an API that differs from its report, until the report and a changeset follow',
    { timeout: 120_000 },
    async () => {
      expect(await check()).toContain('api: the reports of testing are up to date');

      await addToApi('export declare const added: number;');
      expect(await check()).toContain('the public API of testing is not that of docs/api');

      expect(await check('--update')).toContain('there is no new changeset');
      expect(await readFile(copy.path(REPORT), 'utf8')).toContain('const added: number');

      await writeFile(copy.path('.changeset/added.md'), "---\n'nest-redis-lock': minor\n---\n\nA number.\n");
      expect(await check()).toContain('are up to date');
    },
  );
});
