import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { Copy } from '../support/package/copy.js';

describe('npm run commits', () => {
  let copy: Copy;

  const check = async (...range: readonly string[]): Promise<string> => {
    const options = { cwd: copy.folder, timeoutMs: 20_000 };
    return (await node(['.ci/commits.mjs', ...range], options)).stdout;
  };

  beforeAll(async () => {
    copy = await Copy.of('.ci');
    await copy.init();
    await copy.commit(
      'what was written before there was a rule. It is long, has no type and ends in a full stop.',
    );
    await copy.git('switch', '--quiet', '--create', 'work');
  });
  afterAll(() => copy[Symbol.asyncDispose]());

  it('leaves alone what the main branch has', async () => {
    expect(await check()).toContain('0 of 0 in main..HEAD');
  });

  it.each([
    'fix: a lock',
    'feat(core)!: a lock',
    'test(test/unit): ключ 😀',
    `docs: ${'x'.repeat(66)}`,
    'fix: a lock\n\nWhy.',
  ])('takes %j', async (message) => {
    await copy.commit(message);
    expect(await check('HEAD~1..HEAD')).toContain('1 of 1');
  });

  it.each([
    ['a lock', 'the subject is not "type(scope): what changes"'],
    ['bench: a lock', 'the types are feat, fix, perf,'],
    ['fix:a lock', 'the subject is not'],
    ['fix(core) a lock', 'the subject is not'],
    [`docs: ${'x'.repeat(68)}`, 'the subject has 74 characters, 2 too many'],
    ['fix: a lock.', 'ends in a full stop'],
    ['fix: a lock\nWhy.', 'the line after the subject is not empty'],
  ])('refuses %j and says which commit: %s', async (message, problem) => {
    await copy.commit(message);
    const hash = await copy.git('rev-parse', 'HEAD');
    const failure: unknown = await check('HEAD~1..HEAD').catch((error: unknown) => error);
    expect(String(failure)).toContain(`${hash.slice(0, 9)} ${message.split('\n')[0]}`);
    expect(String(failure)).toContain(problem);
  });

  it('looks at each commit since the main branch, and at no merge', async () => {
    await copy.git('switch', '--quiet', '--create', 'merged', 'main');
    await copy.commit('feat: one');
    await copy.git('switch', '--quiet', 'main');
    await copy.commit('feat: two');
    await copy.git('switch', '--quiet', 'merged');
    await copy.git('merge', '--quiet', '--no-ff', '--message=Merge what is there, whatever it is', 'main');
    await copy.commit('feat: three');
    expect(await check()).toContain('2 of 2 in main..HEAD');
  });

  it('says so when there is nothing to compare with', async () => {
    await copy.git('branch', '--quiet', '--move', 'main', 'trunk');
    await expect(check()).rejects.toThrow('there is no origin/main and no main to compare with');
    await copy.git('branch', '--quiet', '--move', 'trunk', 'main');
  });
});
