import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { repository } from '../support/package/pack.js';
import { guardFolder } from '../support/process-guard.js';

describe('npm run test:interop', () => {
  let folder: string;
  let report: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-interop-'));
    guardFolder(folder);
    report = join(folder, 'report.json');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  /** Programs that only say something and fail are all that is on its PATH. */
  const interop = async (programs: Record<string, string>, ...args: readonly string[]): Promise<string> => {
    for (const [name, says] of Object.entries(programs)) {
      await writeFile(join(folder, name), `#!/bin/sh\necho '${says}'\nexit 1\n`);
      await chmod(join(folder, name), 0o755);
    }
    const options = { cwd: repository, env: { PATH: folder }, timeoutMs: 20_000 };
    return (await node(['.ci/interop.mjs', `--report=${report}`, ...args], options)).stdout;
  };

  it.each([
    ['Maven', { java: '' }, 'mvn missing on this machine'],
    ['Maven and Java', {}, 'mvn and java missing on this machine'],
    [
      'a network',
      { java: '', mvn: '[ERROR] Could not transfer artifact org.redisson: Unknown host' },
      'Maven could not download Redisson 4.7.0',
    ],
  ])('says in one line that it did not run without %s, which is no failure', async (_what, programs, why) => {
    const notRun = `test:interop did not run: ${why}`;
    expect(await interop(programs)).toBe(`${notRun}\n`);
    expect(JSON.parse(await readFile(report, 'utf8'))).toEqual({ passed: 0, failed: 0, notRun });
  });

  it('fails where Maven fails for another reason', async () => {
    const broken = { java: '', mvn: '[ERROR] Non-parseable POM' };
    await expect(interop(broken)).rejects.toThrow(/Maven cannot prepare.*Non-parseable POM/s);
    await expect(readFile(report)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it.each([
    [['--short', '--long'], /two extents/],
    [['--minutes=soon'], /greater than 0, not soon/],
  ])('refuses %j', async (args, message) => {
    await expect(interop({}, ...args)).rejects.toThrow(message);
  });
});
