import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../support/package/pack.js';

const FOLDER = join(repository, '.github', 'workflows');

/** The jobs of a workflow by name, as text. */
const jobsOf = (workflow: string): Readonly<Record<string, string>> => {
  const [, jobs = ''] = workflow.split(/^jobs:\n/m);
  const parts = jobs.split(/^ {2}([\w-]+):\n/m).slice(1);
  return Object.fromEntries(parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1] ?? '']] : [])));
};

describe('workflows', () => {
  const workflows = new Map<string, string>();

  beforeAll(async () => {
    for (const name of await readdir(FOLDER)) workflows.set(name, await readFile(join(FOLDER, name), 'utf8'));
    expect([...workflows.keys()]).toEqual(
      expect.arrayContaining([
        'ci.yml',
        'codeql.yml',
        'docs.yml',
        'nightly.yml',
        'pull-request.yml',
        'release.yml',
      ]),
    );
  });

  it('name every action by its commit, with the version beside it', () => {
    for (const [name, text] of workflows) {
      const uses = [...text.matchAll(/\buses: (.*)$/gm)].map(([, what]) => what!);
      expect(uses.length, name).toBeGreaterThan(0);
      for (const what of uses) {
        expect.soft(what, name).toMatch(/^[\w-]+(\/[\w-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
      }
    }
  });

  it('use one version of an action', () => {
    const versions = new Map<string, Set<string>>();
    for (const [, action = '', version = ''] of [...workflows.values()].flatMap((text) => [
      ...text.matchAll(/\buses: ([\w-]+\/[\w-]+)[^@]*@(.*)$/gm),
    ])) {
      versions.set(action, (versions.get(action) ?? new Set()).add(version));
    }
    expect(versions.size).toBeGreaterThan(0);
    for (const [action, found] of versions) expect.soft([...found], action).toHaveLength(1);
  });

  it('may read, and no more, unless a job says what it needs', () => {
    for (const [name, text] of workflows) {
      expect.soft(text, name).toMatch(/^permissions:\n {2}contents: read\n\n/m);
      expect.soft(text, name).not.toMatch(/write-all|pull_request_target/);
    }
  });

  it('leave no credentials of git behind', () => {
    expect([...workflows.values()].join('\n')).toContain('actions/checkout@');
    for (const [name, text] of workflows) {
      const checkouts = text.match(/actions\/checkout@/g)?.length ?? 0;
      expect.soft(text.match(/persist-credentials: false/g)?.length ?? 0, name).toBe(checkouts);
    }
  });

  it('put nothing that a stranger has written into a script', () => {
    let read = 0;
    // What stands in ${{ }} becomes part of the script before the shell sees it. The environment does not.
    for (const [name, text] of workflows) {
      const scripts = [...text.matchAll(/^( *)(?:- )?run: (\|\n(?:\1 {2,}.*\n|\n)*|.*$)/gm)].map(
        ([script]) => script,
      );
      read += scripts.length;
      expect.soft(scripts.join('\n'), name).not.toContain('${{');
    }
    expect(read).toBeGreaterThan(0);
  });

  it('run the gate on each change, and what takes long each night', () => {
    expect(workflows.get('ci.yml')).toContain('run: .ci/run --since="$SINCE"\n');
    expect(workflows.get('nightly.yml')).toMatch(/ {4}- cron: '[^]*run: \.ci\/nightly --strict\n/);
  });

  it('install the packed library on Windows and macOS each night, with tests that are there', () => {
    const { systems = '' } = jobsOf(workflows.get('nightly.yml')!);
    expect(systems).toContain('system: [windows-latest, macos-latest]');
    expect(systems).toContain('PACKED_TARBALL: packed/${{ needs.pack.outputs.file }}');
    const specs = systems.match(/\btest\/\S+/g) ?? [];
    expect(specs).toContain('test/package/no-redis.spec.ts');
    expect(specs.filter((file) => !existsSync(join(repository, file)))).toEqual([]);
  });

  describe('release', () => {
    let jobs: Readonly<Record<string, string>>;

    beforeAll(() => {
      jobs = jobsOf(workflows.get('release.yml')!);
    });

    it('packs once, and tests and publishes that file', () => {
      const packing = Object.keys(jobs).filter((name) => jobs[name]!.includes('npm pack'));
      expect(packing).toEqual(['pack']);
      for (const name of ['test', 'publish']) {
        const job = jobs[name]!;
        expect.soft(job, name).toContain('sha256sum --check --strict');
        expect.soft(job, name).toContain('SHA256: ${{ needs.pack.outputs.sha256 }}');
      }
      expect(jobs['test']).toContain('PACKED_TARBALL: packed/${{ needs.pack.outputs.file }}');
      expect(jobs['test']).toContain('run: .ci/run');
    });

    it('publishes after the tests, with provenance, and with no other code on the machine', () => {
      expect(jobs['publish']).toContain('needs: [pack, test]');
      expect(jobs['publish']).toMatch(/npm publish "\.\/packed\/\$FILE" --provenance .*--ignore-scripts/);
      expect(jobs['publish']).not.toMatch(/actions\/checkout|npm (ci|install)|cache: npm/);
    });

    it('lets only the job that publishes say who it is', () => {
      const allowed = Object.keys(jobs).filter((name) => jobs[name]!.includes('id-token: write'));
      expect(allowed).toEqual(['publish']);
    });

    it('begins only with a tag that fits what stands in the repository', () => {
      expect(workflows.get('release.yml')).toMatch(/^on:\n {2}push:\n {4}tags: \['v\*'\]\n/m);
      expect(jobs['pack']).toMatch(/npm run release:check -- "\$GITHUB_REF_NAME"[^]*npm pack/);
    });
  });
});
