// Two steps of a release; the release workflow does the rest.
//
//   node .ci/release.mjs prepare       sets version and changelog from the files in .changeset
//   node .ci/release.mjs check <tag>   checks that the repository can be published under this tag
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { captureNpm, root, tool } from './process.mjs';

// Placeholder for the owner of the repository, in package.json and in addresses of documents: links and badges.
const PLACEHOLDER = /\bOWNER\b/;
const PLACEHOLDER_ADDRESS = /:\/\/[^\s)"']*\bOWNER\b/;

const at = (file) => join(root, file);
const read = (file) => readFileSync(at(file), 'utf8');
const readJson = (file) => JSON.parse(read(file));

const splitChangelog = () => {
  const text = read('CHANGELOG.md');
  const sections = text.indexOf('\n## ') + 1;
  if (sections === 0) throw new Error('CHANGELOG.md has no section "## <version>"');
  return { head: text.slice(0, sections), sections: text.slice(sections) };
};

// changesets inserts a new section below the first line of the file, above the introduction.
const withShortHead = (work) => {
  const before = read('CHANGELOG.md');
  const { head, sections } = splitChangelog();
  writeFileSync(at('CHANGELOG.md'), `# Changelog\n\n${sections}`);
  try {
    work();
  } catch (error) {
    writeFileSync(at('CHANGELOG.md'), before);
    throw error;
  }
  // Links in a changeset are relative to its own folder.
  writeFileSync(at('CHANGELOG.md'), head + splitChangelog().sections.replaceAll('](../', ']('));
};

const setLockedVersion = (version) => {
  const lock = readJson('package-lock.json');
  lock.version = version;
  lock.packages[''].version = version;
  writeFileSync(at('package-lock.json'), `${JSON.stringify(lock, null, 2)}\n`);
};

const prepare = () => {
  const { version: before } = readJson('package.json');
  withShortHead(() => tool('changeset', 'version'));
  const { version } = readJson('package.json');
  if (version === before) throw new Error(`no file in .changeset asks for a version after ${before}`);
  setLockedVersion(version);
  console.log(`release: ${version} is prepared; read CHANGELOG.md, commit it, and push the tag v${version}`);
};

const packedFiles = () => {
  const [{ files }] = JSON.parse(captureNpm(['pack', '--dry-run', '--json', '--ignore-scripts']));
  return files.map(({ path }) => path);
};

// npm shows these fields, and rejects provenance without the repository.
const originProblems = (manifest) => {
  const fields = ['author', 'repository', 'homepage', 'bugs'].filter((name) => {
    const value = manifest[name];
    return !value || PLACEHOLDER.test(JSON.stringify(value));
  });
  const documents = packedFiles().filter((path) => path !== 'package.json');
  const files = documents.filter((path) => PLACEHOLDER_ADDRESS.test(read(path)));
  return [
    ...fields.map((name) => `package.json has no "${name}", or has the placeholder OWNER there`),
    ...files.map((path) => `${path} has the placeholder OWNER in an address`),
  ].map((problem) => `${problem} (see .github/RELEASING.md)`);
};

const check = (tag) => {
  const manifest = readJson('package.json');
  const { version } = manifest;
  const problems = [];
  if (tag !== `v${version}`)
    problems.push(
      `the tag is ${tag ?? 'missing'}, but package.json has version ${version}: it has to be v${version}`,
    );
  if (readJson('package-lock.json').version !== version)
    problems.push(`package-lock.json has another version than package.json: npm install mends it`);
  if (!read('CHANGELOG.md').includes(`\n## ${version}\n`))
    problems.push(`CHANGELOG.md has no section "## ${version}"`);
  problems.push(...originProblems(manifest));
  if (problems.length > 0) throw new Error(problems.join('\nrelease: '));
  console.log(`release: ${tag} can be published`);
};

const steps = { prepare, check };

try {
  const [step, ...args] = process.argv.slice(2);
  if (!Object.hasOwn(steps, step ?? ''))
    throw new Error(`say which step: ${Object.keys(steps).join(' or ')}`);
  steps[step](...args);
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}
