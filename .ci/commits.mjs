// Checks the messages of commits: "type(scope): what changes", in at most 72 characters, then an empty line.
//
//   node .ci/commits.mjs [range]     default: the commits of HEAD that are not on the main branch
//
// It skips merges. A range is what `git rev-list` takes.
import { capture } from './process.mjs';

const MAX_CHARACTERS = 72;
const TYPES = ['feat', 'fix', 'perf', 'refactor', 'test', 'docs', 'build', 'ci', 'chore', 'revert'];
const SUBJECT = new RegExp(`^(${TYPES.join('|')})(\\([a-z0-9./-]+\\))?!?: \\S`);
const MAIN = ['origin/main', 'main'];

const git = (...args) => capture('git', args).trim();

const exists = (ref) => {
  try {
    git('rev-parse', '--verify', '--quiet', `${ref}^{commit}`);
    return true;
  } catch {
    return false;
  }
};

const ownRange = () => {
  const main = MAIN.find(exists);
  if (!main) throw new Error(`say which commits: there is no ${MAIN.join(' and no ')} to compare with`);
  return `${main}..HEAD`;
};

const problemsOf = ([subject = '', second = '']) => {
  const problems = [];
  if (!SUBJECT.test(subject))
    problems.push(`the subject is not "type(scope): what changes"; the types are ${TYPES.join(', ')}`);
  const { length } = [...subject];
  if (length > MAX_CHARACTERS)
    problems.push(`the subject has ${length} characters, ${length - MAX_CHARACTERS} too many`);
  if (subject.endsWith('.')) problems.push('the subject ends in a full stop');
  if (second !== '') problems.push('the line after the subject is not empty');
  return problems;
};

const check = (commit) => {
  const lines = git('show', '--no-patch', '--format=%B', commit).split('\n');
  const problems = problemsOf(lines);
  if (problems.length > 0) console.error(`${commit.slice(0, 9)} ${lines[0]}`);
  for (const problem of problems) console.error(`  ${problem}`);
  return problems.length === 0;
};

try {
  const range = process.argv[2] ?? ownRange();
  const commits = git('rev-list', '--no-merges', '--reverse', range).split('\n').filter(Boolean);
  const good = commits.filter(check);
  console.log(`commits: ${good.length} of ${commits.length} in ${range} have a good message`);
  if (good.length < commits.length) process.exitCode = 1;
} catch (error) {
  console.error(`commits: ${error.message}\n${error.output ?? ''}`.trimEnd());
  process.exitCode = 1;
}
