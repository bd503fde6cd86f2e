import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { node } from '../support/package/command.js';
import { Copy } from '../support/package/copy.js';

const FILES = ['.ci', '.changeset', 'package.json', 'package-lock.json', 'CHANGELOG.md', '.prettierrc'];
/** What else is packed from a checkout that has not been built. */
const DOCUMENTS = ['docs', 'README.md', 'README.zh-CN.md', 'SECURITY.md', 'LICENSE'];

interface Manifest {
  version: string;
  author?: string;
  repository?: unknown;
}

const release = async (copy: Copy, ...args: readonly string[]): Promise<string> =>
  (await node(['.ci/release.mjs', ...args], { cwd: copy.folder, timeoutMs: 60_000 })).stdout;

const failureOf = (run: Promise<string>): Promise<string> =>
  run.then((output) => `no failure: ${output}`, String);

/** Everything that the check says is in the way of a release. */
const complaintsOf = async (copy: Copy, version: string): Promise<readonly string[]> => {
  const failure = await failureOf(release(copy, 'check', `v${version}`));
  return [...failure.matchAll(/^release: (.*?)(?: \(see \.github\/RELEASING\.md\))?$/gm)].map(
    ([, complaint]) => complaint!,
  );
};

const withoutField = (name: string): string =>
  `package.json has no "${name}", or has the placeholder OWNER there`;

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

  it('refuses placeholders in package.json, and in links and badges of what is packed', async () => {
    await using copy = await Copy.of(...FILES);
    const { version } = await editManifest(copy, (manifest) => {
      manifest.author = 'Ada Lovelace';
      manifest.repository = { url: 'git+https://github.com/OWNER/nest-redis-lock.git' };
    });
    await writeFile(copy.path('README.md'), '![build](https://badges.example/OWNER/nest-redis-lock.svg)');
    await writeFile(copy.path('LICENSE'), 'The KEY has an OWNER.');
    const complaints = await complaintsOf(copy, version);
    expect(complaints).toContain(withoutField('repository'));
    expect(complaints).not.toContain(withoutField('author'));
    expect(complaints).toContain('README.md has the placeholder OWNER in an address');
    expect(complaints.join('\n')).not.toContain('LICENSE');
  });

  it('finds placeholders in this repository, and nothing else: it passes once the owner has replaced them', async () => {
    await using copy = await Copy.of(...FILES, ...DOCUMENTS);
    const version = await versionIn(copy, 'package.json');
    const complaints = await complaintsOf(copy, version);
    const fields = ['author', 'repository', 'homepage', 'bugs'].map(withoutField);
    const addresses =
      /^((CHANGELOG|SECURITY)\.md|docs\/\S+\.(md|txt)) has the placeholder OWNER in an address$/;
    expect(complaints.filter((one) => !fields.includes(one) && !addresses.test(one))).toEqual([]);
    for (const file of new Set(complaints.map((one) => one.split(' ')[0]!))) {
      const text = await readFile(copy.path(file), 'utf8');
      await writeFile(copy.path(file), text.replaceAll('OWNER', 'ada'));
    }
    expect(await release(copy, 'check', `v${version}`)).toContain(`v${version} can be published`);
  });
});
