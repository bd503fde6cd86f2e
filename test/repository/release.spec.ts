import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { Copy } from '../support/package/copy.js';

const FILES = ['.ci', '.changeset', 'package.json', 'package-lock.json', 'CHANGELOG.md', '.prettierrc'];

interface Manifest {
  version: string;
  author?: string;
  repository?: unknown;
}

const release = async (copy: Copy, ...args: readonly string[]): Promise<string> =>
  (await node(['.ci/release.mjs', ...args], { cwd: copy.folder, timeoutMs: 60_000 })).stdout;

const failureOf = (run: Promise<string>): Promise<string> =>
  run.then((output) => `no failure: ${output}`, String);

const changelogOf = (copy: Copy): Promise<string> => readFile(copy.path('CHANGELOG.md'), 'utf8');

const versionIn = async (copy: Copy, file: string): Promise<string> =>
  (JSON.parse(await readFile(copy.path(file), 'utf8')) as Manifest).version;

const editManifest = async (copy: Copy, edit: (manifest: Manifest) => void): Promise<Manifest> => {
  const manifest = JSON.parse(await readFile(copy.path('package.json'), 'utf8')) as Manifest;
  edit(manifest);
  await writeFile(copy.path('package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
};

/** The repository with its version set, and only `changes` waiting in .changeset. */
const repositoryWith = async (version: string, changes: Readonly<Record<string, string>>): Promise<Copy> => {
  const copy = await Copy.of(...FILES);
  await editManifest(copy, (manifest) => (manifest.version = version));
  for (const name of await readdir(copy.path('.changeset'))) {
    if (name.endsWith('.md') && name !== 'README.md') await rm(copy.path('.changeset', name));
  }
  for (const [name, part] of Object.entries(changes)) {
    const text = `---\n'nest-redis-lock': ${part}\n---\n\nThe change of ${name}. See [keys](../docs/guide/keys.md).\n`;
    await writeFile(copy.path('.changeset', `${name}.md`), text);
  }
  await copy.init();
  return copy;
};

describe('npm run release:prepare', () => {
  it('makes the next version and its section of the changelog, under what stands above all sections', async () => {
    await using copy = await repositoryWith('3.1.4', { 'small-fix': 'patch', 'new-thing': 'minor' });
    const before = await changelogOf(copy);
    const head = before.slice(0, before.indexOf('\n## '));
    await release(copy, 'prepare');
    expect(await versionIn(copy, 'package.json')).toBe('3.2.0');
    expect(await versionIn(copy, 'package-lock.json')).toBe('3.2.0');
    const changelog = await changelogOf(copy);
    expect(changelog.startsWith(`${head}\n## 3.2.0\n`)).toBe(true);
    expect(changelog).toMatch(/The change of new-thing\.[^]*The change of small-fix\./);
    expect(changelog.match(/\[keys\]\(docs\/guide\/keys\.md\)/g)).toHaveLength(2);
    expect(changelog).not.toContain('(../');
    expect(changelog.endsWith(before.slice(head.length))).toBe(true);
    expect((await readdir(copy.path('.changeset'))).sort()).toEqual(['README.md', 'config.json']);
  });

  it('says so when no change waits, and changes nothing', async () => {
    await using copy = await repositoryWith('3.1.4', {});
    await expect(release(copy, 'prepare')).rejects.toThrow('asks for a version after 3.1.4');
    expect(await copy.git('status', '--porcelain', '--untracked-files=no')).toBe('');
  });
});

describe('npm run release:check', () => {
  it('names everything that is in the way of a release', async () => {
    await using copy = await Copy.of(...FILES);
    await editManifest(copy, (manifest) => {
      manifest.version = '9.9.9';
      delete manifest.repository;
    });
    const failure = await failureOf(release(copy, 'check', 'v1.0.0'));
    expect(failure).toContain('the tag is v1.0.0, but package.json has version 9.9.9: it has to be v9.9.9');
    expect(failure).toContain('package-lock.json has another version');
    expect(failure).toContain('CHANGELOG.md has no section "## 9.9.9"');
    expect(failure).toContain('package.json has no "repository"');
  });

  it('refuses the placeholders of package.json, and links to them in what is packed', async () => {
    await using copy = await Copy.of(...FILES, 'docs', 'README.md');
    const { version } = await editManifest(copy, (manifest) => (manifest.author = 'Ada Lovelace'));
    const failure = await failureOf(release(copy, 'check', `v${version}`));
    for (const field of ['repository', 'homepage', 'bugs'])
      expect(failure).toContain(`package.json has no "${field}", or has the placeholder OWNER there`);
    expect(failure).not.toContain('"author"');
    expect(failure).not.toMatch(/^.{0,4}README/m);
    expect(failure).toContain('docs/guide/installation.md has the placeholder github.com/OWNER/');
    expect(failure).not.toContain('docs/decisions');
  });

  it('passes the version that is prepared here, once the owner has replaced the placeholders', async () => {
    await using copy = await Copy.of(...FILES, 'docs', 'README.md');
    await copy.init();
    const files = (await copy.git('grep', '-l', 'OWNER', '--', ':!.ci')).split('\n');
    for (const file of files) {
      const text = await readFile(copy.path(file), 'utf8');
      await writeFile(copy.path(file), text.replaceAll('OWNER', 'ada'));
    }
    const version = await versionIn(copy, 'package.json');
    expect(await release(copy, 'check', `v${version}`)).toContain(`v${version} can be published`);
  });
});
