// The form of commit messages: see "Commits and pull requests" in CONTRIBUTING.md.
const TYPES = ['feat', 'fix', 'perf', 'refactor', 'test', 'docs', 'build', 'ci', 'chore', 'revert'];

export default {
  parserPreset: {
    parserOpts: {
      headerPattern: /^(\w+)(?:\(([a-z0-9./-]+)\))?!?: (\S.*)$/,
      headerCorrespondence: ['type', 'scope', 'subject'],
    },
  },
  rules: {
    'type-empty': [2, 'never'],
    'type-enum': [2, 'always', TYPES],
    'subject-empty': [2, 'never'],
    'subject-full-stop': [2, 'never', '.'],
    'header-max-length': [2, 'always', 72],
    'body-leading-blank': [2, 'always'],
  },
  // git writes the subject of a merge. The tool's own list would also exempt reverts and fixups.
  defaultIgnores: false,
  ignores: [(message) => message.startsWith('Merge ')],
};
