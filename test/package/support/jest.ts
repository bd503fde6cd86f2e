import { CommandFailure } from '../../support/package/command.js';
import type { ConsumerApp } from './consumer-app.js';

interface JestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

export interface JestResult {
  /** Full names of the tests that passed, in alphabetical order. */
  readonly passed: readonly string[];
  /** First line of each failure, by the full name of its test. */
  readonly failed: Readonly<Record<string, string>>;
  readonly stderr: string;
}

interface JestOptions {
  /** Node that runs Jest; by default the one that runs the tests. */
  readonly program?: string;
  /** Flags of Node. */
  readonly flags?: readonly string[];
  /** Folder with the tests. Default: all. */
  readonly folder?: string;
}

/** Runs Jest in an app. It resolves also when a test fails, and rejects when Jest itself does. */
export const runJest = async (app: ConsumerApp, options: JestOptions = {}): Promise<JestResult> => {
  const { program, flags, folder } = options;
  const args = ['--ci', '--runInBand', '--json', ...(folder ? [folder] : [])];
  const { stdout, stderr } = await app
    .tool('jest/bin/jest.js', args, { program, flags })
    .catch((error: unknown) => {
      if (error instanceof CommandFailure && error.output.stdout.startsWith('{')) return error.output;
      throw error;
    });
  const { testResults } = JSON.parse(stdout) as JestReport;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return {
    passed: tests
      .filter(({ status }) => status === 'passed')
      .map(({ fullName }) => fullName)
      .sort(),
    failed: Object.fromEntries(
      tests
        .filter(({ status }) => status !== 'passed')
        .map(({ fullName, failureMessages }) => [fullName, failureMessages[0]?.split('\n')[0] ?? '']),
    ),
    stderr,
  };
};
