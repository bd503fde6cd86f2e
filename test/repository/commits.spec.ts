import { stripVTControlCharacters } from 'node:util';
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
    expect(await check()).toMatch(/^commits: the messages in [0-9a-f]{40}\.\.HEAD are good\n$/);
  });

  it('takes messages in the form that CONTRIBUTING.md describes', async () => {
    const good = [
      'fix: a lock',
      'feat(core)!: a lock',
      'test(test/unit): ключ 😀',
      `docs: ${'x'.repeat(66)}`,
      'fix: a lock\n\nWhy.',
    ];
    for (const message of good) await copy.commit(message);
    expect(await check(`HEAD~${good.length}..`)).toContain('are good');
  });

  it('refuses any other message, and says which one and why', async () => {
    const bad = [
      ['a lock', 'type may not be empty'],
      ['bench: a lock', 'type must be one of [feat, fix, perf,'],
      ['fix:a lock', 'type may not be empty'],
      ['fix(core) a lock', 'type may not be empty'],
      ['fix(Core): a lock', 'type may not be empty'],
      ['Revert "fix: a lock"', 'type may not be empty'],
      [`docs: ${'x'.repeat(68)}`, 'header must not be longer than 72 characters, current length is 74'],
      ['fix: a lock.', 'subject may not end with full stop'],
      ['fix: a lock\nWhy.', 'body must have leading blank line'],
    ] as const;
    for (const [message] of bad) await copy.commit(message);
    const failure: unknown = await check(`HEAD~${bad.length}..HEAD`).catch((error: unknown) => error);
    const reports = stripVTControlCharacters(String(failure)).split('input: ').slice(1);
    expect(reports).toHaveLength(bad.length);
    for (const [message, problem] of bad) {
      const report = reports.find((text) => text.startsWith(`${message.split('\n')[0]}\n`));
      expect.soft(report, message).toContain(problem);
    }
  });

  it('looks at each commit since the main branch, and at no merge', async () => {
    await copy.git('switch', '--quiet', '--create', 'merged', 'main');
    await copy.commit('feat: one');
    await copy.git('switch', '--quiet', 'main');
    await copy.commit('what main has');
    await copy.git('switch', '--quiet', 'merged');
    await copy.git('merge', '--quiet', '--no-ff', '--message=Merge what is there, whatever it is', 'main');
    await copy.commit('feat: three');
    expect(await check()).toContain('are good');
    await copy.commit('four');
    await copy.commit('feat: five');
    const failure = await check().catch(String);
    expect(stripVTControlCharacters(failure)).toContain('input: four\n');
  });

  it('refuses what is no range', async () => {
    await expect(check('HEAD')).rejects.toThrow('HEAD is not a range of commits, from..to');
  });

  it('says so when there is nothing to compare with', async () => {
    await copy.git('branch', '--quiet', '--move', 'main', 'trunk');
    await expect(check()).rejects.toThrow('there is no origin/main and no main to compare with');
    await copy.git('branch', '--quiet', '--move', 'trunk', 'main');
  });
});
