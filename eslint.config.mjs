import eslint from '@eslint/js';
import markdown from '@eslint/markdown';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';
import plain from './.ci/eslint/plain-sentences.mjs';

const typescript = ['**/*.ts'];

const RUNS = {
  selector:
    'CallExpression[callee.object.name=/^(it|test|describe)$/][callee.property.name=/^(skip|skipIf|runIf|only|todo)$/]',
  message: 'A test that does not run proves nothing.',
};

const SLEEPS = [
  'ImportDeclaration[source.value=/timers.promises$/] ImportSpecifier[imported.name=/^(setTimeout|setInterval|scheduler)$/]',
  "NewExpression[callee.name='Promise'] CallExpression[callee.name='setTimeout']",
  "CallExpression[callee.name='promisify'] Identifier[name='setTimeout']",
].map((selector) => ({
  selector,
  message:
    'A fixed sleep is too short on a busy machine and too long on any other. Wait for an event or with until(); ' +
    'where time is what is tested, tell it to a clock (ToldClock, VirtualRuntime).',
}));

export default defineConfig(
  globalIgnores([
    '**/dist/',
    'coverage/',
    'reference/',
    'docs/.site/.vitepress/.temp/',
    'node_modules/',
    'test/package/apps/',
    // Records: they keep the words of their time.
    'docs/decisions/',
    'CHANGELOG.md',
  ]),
  {
    linterOptions: { reportUnusedDisableDirectives: 'error', reportUnusedInlineConfigs: 'error' },
  },

  {
    files: ['**/*.{ts,js,mjs,cjs}'],
    plugins: { plain },
    rules: { 'plain/comments': 'error', 'plain/test-titles': 'error' },
  },

  {
    files: ['**/*.md'],
    // The rules are those of English sentences.
    ignores: ['**/*.zh-CN.md'],
    plugins: { markdown, plain },
    language: 'markdown/gfm',
    rules: { 'plain/markdown': 'error' },
  },

  {
    files: ['**/*.{js,mjs,cjs}'],
    extends: [eslint.configs.recommended],
    languageOptions: {
      globals: {
        console: 'readonly',
        process: 'readonly',
        URL: 'readonly',
        require: 'readonly',
        module: 'writable',
      },
    },
  },

  {
    files: typescript,
    extends: [eslint.configs.recommended, tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // A promise that is neither awaited nor caught becomes an unhandled rejection.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true, allowRethrowing: true }],

      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/no-deprecated': 'error',

      // The rule leaves files with decorators alone: there an import may be needed at run time, as metadata.
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/consistent-type-exports': 'error',
      'no-duplicate-imports': ['error', { includeExports: false, allowSeparateTypeImports: true }],

      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // Interfaces of Nest and of the stores ask for promises where there is nothing to wait for.
      '@typescript-eslint/require-await': 'off',
      // Decorated classes without members (modules) are how Nest works.
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],

      eqeqeq: ['error', 'always'],
      'no-empty': ['error', { allowEmptyCatch: false }],
      'no-implicit-coercion': 'error',
      'no-param-reassign': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
    },
  },

  {
    files: ['lib/**/*.ts'],
    rules: {
      'no-console': 'error',
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
      complexity: ['error', 20],
    },
  },

  {
    // The core and the Redis store run on a virtual clock in tests. The real one is read in one file. The pauses between
    // attempts to connect are those of ioredis, and random.
    files: ['lib/core/**/*.ts', 'lib/stores/redis/**/*.ts'],
    ignores: ['lib/core/util/runtime.ts', 'lib/stores/redis/connection/reconnect.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'performance', 'crypto'].map((name) => ({
          name,
          message: 'Take clock, timers and ids from the runtime.',
        })),
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Take the clock from the runtime.' },
        { object: 'Math', property: 'random', message: 'Take randomness from outside.' },
      ],
    },
  },

  {
    files: ['test/**/*.ts'],
    rules: {
      // What a test knows about a reply or a mock, the types often do not.
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // Tests throw values that are no errors, and use deprecated APIs, to check that the library copes.
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/no-deprecated': 'off',
      // Classes under test have methods that lock and do nothing else, and arguments only a key is made of.
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none', varsIgnorePattern: '^_' }],
      '@typescript-eslint/no-empty-function': 'off',
      'no-restricted-syntax': ['error', RUNS],
    },
  },

  {
    files: ['test/**/*.spec.ts'],
    rules: {
      'no-restricted-syntax': ['error', RUNS, ...SLEEPS],
    },
  },
);
