// Checks the messages of commits with commitlint; its rules are in commitlint.config.mjs.
//
//   node .ci/commits.mjs [from..to]     default: the commits of HEAD that are not on the main branch
import { mergeBase } from './git.mjs';
import { tool } from './process.mjs';

const ownCommits = () => {
  const base = mergeBase();
  if (!base) throw new Error('say which commits: there is no origin/main and no main to compare with');
  return `${base}..HEAD`;
};

try {
  const range = process.argv[2] ?? ownCommits();
  const [, from, to] = /^(.+?)\.\.(.*)$/.exec(range) ?? [];
  if (!from) throw new Error(`${range} is not a range of commits, from..to`);
  tool('commitlint', '--config', '.ci/commitlint.config.mjs', '--from', from, '--to', to || 'HEAD');
  console.log(`commits: the messages in ${range} are good`);
} catch (error) {
  console.error(`commits: ${error.message}`);
  process.exitCode = 1;
}
