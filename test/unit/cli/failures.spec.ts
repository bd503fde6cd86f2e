import { describe, expect, it } from 'vitest';
import { UsageError } from '../../../lib/cli/usage-error.js';
import { failureOf } from '../../../lib/cli/failures.js';
import { passwordsIn, withoutSecrets } from '../../../lib/cli/secrets.js';
import { LockConfigurationError, LockStoreError } from '../../../lib/index.js';

describe('the text of a failure', () => {
  it.each([
    ['an error about a key', new LockStoreError('failed at "a\u001b[2J\nb"', 'unknown')],
    ['a mistake in the arguments', new UsageError('Unknown option \u001b[2J\n.')],
  ])('steers no terminal: %s', (_, error) => {
    expect(failureOf(error).text).toContain('\\u{1b}[2J\\u{a}');
    expect(failureOf(error).text).not.toMatch(/\p{Cc}/u);
  });

  it('has the lines of the stack of an unexpected error, and steers no terminal', () => {
    const { exitCode, text } = failureOf(new Error('\u001b[2J'));
    expect([exitCode, text]).toEqual([3, expect.stringMatching(/^Error: \\u\{1b\}\[2J\n +at /)]);
    expect(failureOf('thrown \u0007').text).toBe('thrown \\u{7}');
  });

  it('has a statement to run as it can be pasted', () => {
    const error = new LockConfigurationError('run: CREATE TABLE "nest_lock" (\n  name text\n)\u001b[2J');
    expect(failureOf(error).text).toBe('run: CREATE TABLE "nest_lock" (\n  name text\n)\\u{1b}[2J');
  });

  it('has no password of an address, however it is written there', () => {
    const args = ['who', 'order:42', '--redis', 'redis://:s3cr3t%40pass@host'];
    expect(withoutSecrets('s3cr3t%40pass, s3cr3t@pass, redis://:s3cr3t@pass@host', passwordsIn(args))).toBe(
      '***, ***, redis://***@host',
    );
  });
});
