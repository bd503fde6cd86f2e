import { describe, expect, it } from 'vitest';
import { parseInvocation, UsageError } from '../../../lib/cli/arguments.js';
import { failureOf, withoutSecrets } from '../../../lib/cli/failures.js';
import { LockConfigurationError, LockKeyError, LockStoreError } from '../../../lib/index.js';

const SECRET = 's3cr3t@pass';
const URL = `redis://ops:${encodeURIComponent(SECRET)}@10.0.0.1:6379`;

const parse = (...args: readonly string[]) => parseInvocation(args, {});

describe('the arguments of the command', () => {
  it.each([
    [['--redis', 'a'], { store: 'redis', urls: ['a'], cluster: false }],
    [['--redis', 'a', '--redis', 'b'], { store: 'redis', urls: ['a', 'b'], cluster: false }],
    [['--cluster', '--redis=a'], { store: 'redis', urls: ['a'], cluster: true }],
    [['--postgres', 'p'], { store: 'postgres', url: 'p' }],
    [['--mysql', 'm'], { store: 'mysql', url: 'm' }],
    [['--zookeeper', 'z'], { store: 'zookeeper', hosts: 'z', basePath: undefined }],
    [['--zookeeper', 'z', '--base-path', '/x'], { store: 'zookeeper', hosts: 'z', basePath: '/x' }],
  ])('%j name one store', (args, address) => {
    expect(parse('who', 'order:42', ...args)).toEqual({
      ...{ command: 'who', key: 'order:42', address, keyPrefix: undefined, json: false, yes: false },
    });
  });

  it('have a key, and for list perhaps a prefix', () => {
    expect(parse('list', '--redis', 'a')).toMatchObject({ command: 'list', key: '' });
    expect(parse('list', 'order:', '--redis', 'a')).toMatchObject({ command: 'list', key: 'order:' });
    expect(parse('--redis', 'a', 'unlock', '-y', '--', '--odd')).toMatchObject({ key: '--odd', yes: true });
    expect(parse('who', 'a', '--redis', 'a', '--json', '--key-prefix', '')).toMatchObject({
      ...{ json: true, keyPrefix: '' },
    });
    expect([parse('--help'), parse('who', '-h'), parse('--version')]).toEqual(['help', 'help', 'version']);
  });

  it.each([
    [[], ['of-env'], false],
    [['--cluster'], ['of-env'], true],
    [['--redis', 'a'], ['a'], false],
  ])('%j: without a store they name the server in REDIS_URL', (args, urls, cluster) => {
    const address = { store: 'redis', urls, cluster };
    expect(parseInvocation(['list', ...args], { REDIS_URL: 'of-env' })).toMatchObject({ address });
    expect(parseInvocation(['list', '--mysql', 'm'], { REDIS_URL: 'of-env' })).toMatchObject({
      address: { store: 'mysql', url: 'm' },
    });
    expect(() => parseInvocation(['list'], { REDIS_URL: '' })).toThrow('No store');
  });

  it.each([
    [[], 'No command: there are who, list, queue, unlock.'],
    [['whom', 'a', '--redis', URL], '"whom" is no command'],
    [[URL], 'No command: there are'],
    [['who', '--redis', URL], 'who needs one key.'],
    [['who', 'a', URL], 'who needs one key.'],
    [['list', 'a', 'b', '--redis', URL], 'list has at most one argument'],
    [['who', 'a'], 'No store: set REDIS_URL, or give --redis URL'],
    [['who', 'a', '--redis', URL, '--mysql', URL], 'Give only one of --redis and --mysql.'],
    [['who', 'a', '--redis', URL, '--base-path', '/x'], '--base-path goes with --zookeeper.'],
    [['who', 'a', '--mysql', URL, '--cluster'], '--cluster goes with --redis.'],
    [['who', 'a', '--redis', URL, '--yes'], '--yes goes with unlock.'],
    [['who', 'a', `--redos=${URL}`], "Unknown option 'redos'."],
    [['who', 'a', '--redis'], "Option '--redis <value>' argument missing."],
    [['who', 'a', `--json=${URL}`, '--redis', URL], "Option '--json' does not take an argument."],
  ])('%j are refused, and the refusal shows no address', (args, message) => {
    const refused = (): unknown => parse(...args);
    expect(refused).toThrow(UsageError);
    expect(refused).toThrow(message);
    try {
      refused();
    } catch (error) {
      const { exitCode, text } = failureOf(error);
      expect([exitCode, text.includes('10.0.0.1'), text.includes('s3cr3t')]).toEqual([2, false, false]);
      expect(text).toContain('nest-redis-lock --help');
    }
  });
});

describe('a failure', () => {
  it.each([
    [new LockConfigurationError('the options are wrong'), 2],
    [new LockKeyError('the key is empty'), 2],
    [new LockStoreError('Redis did not answer', 'unknown'), 3],
  ])('of the library is shown without its stack: %s', (error, exitCode) => {
    expect(failureOf(error)).toEqual({ exitCode, text: error.message });
  });

  it('that is unexpected shows its stack', () => {
    const { exitCode, text } = failureOf(new TypeError('a bug'));
    expect([exitCode, text]).toEqual([3, expect.stringMatching(/^TypeError: a bug\n +at /)]);
  });

  it('shows no password, in any form', () => {
    const args = ['who', 'a', '--redis', URL, '--postgres=postgres://host/app?user=x&password=hidden'];
    const encoded = encodeURIComponent(SECRET);
    const text = withoutSecrets(`${URL} failed: ${SECRET}, ${encoded}, hidden; mysql://a:b@c/d`, args);
    expect(text).toBe('redis://***@10.0.0.1:6379 failed: ***, ***, ***; mysql://***@c/d');
  });
});
