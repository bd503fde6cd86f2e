import { describe, expect, it } from 'vitest';
import { parseInvocation } from '../../../lib/cli/arguments.js';
import { failureOf } from '../../../lib/cli/failures.js';
import { passwordsIn, withoutSecrets } from '../../../lib/cli/secrets.js';
import { UsageError } from '../../../lib/cli/usage-error.js';
import { LockConfigurationError, LockKeyError, LockStoreError } from '../../../lib/index.js';

const SECRET = 's3cr3t@pass';
const URL = `redis://ops:${encodeURIComponent(SECRET)}@10.0.0.1:6379`;

const parse = (...args: readonly string[]) => parseInvocation(args, {});

describe('the arguments of the command', () => {
  it.each([
    [['--redis', 'a'], { store: 'redis', sources: ['a'] }],
    [['--redis', 'a', '--redis', 'b'], { store: 'redis', sources: ['a', 'b'] }],
    [['--cluster', '--redis=a'], { store: 'redis', sources: [{ cluster: ['a'] }] }],
    [['--postgres', 'p'], { store: 'postgres', options: { connectionString: 'p' } }],
    [['--mysql', 'm'], { store: 'mysql', options: { uri: 'm' } }],
    [['--zookeeper', 'z'], { store: 'zookeeper', options: { connect: 'z' } }],
    [
      ['--zookeeper', 'z', '--base-path', '/x'],
      { store: 'zookeeper', options: { connect: 'z', basePath: '/x' } },
    ],
  ])('%j name one store', (args, address) => {
    expect(parse('who', 'order:42', ...args)).toEqual({
      ...{
        command: 'who',
        key: 'order:42',
        address,
        keyPrefix: undefined,
        json: false,
        yes: false,
        secrets: [],
      },
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
    [[], ['of-env']],
    [['--cluster'], [{ cluster: ['of-env'] }]],
    [['--redis', 'a'], ['a']],
  ])('%j: without a store they name the server in REDIS_URL', (args, sources) => {
    const address = { store: 'redis', sources };
    expect(parseInvocation(['list', ...args], { REDIS_URL: 'of-env' })).toMatchObject({ address });
    expect(parseInvocation(['list', '--mysql', 'm'], { REDIS_URL: 'of-env' })).toMatchObject({
      address: { store: 'mysql' },
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
    [['who', 'a'], 'No store: set REDIS_URL or NEST_REDIS_LOCK_CONFIG, or give --config FILE, --redis URL'],
    [['who', 'a', '--redis', URL, '--mysql', URL], 'Give only one of --redis and --mysql.'],
    [['who', 'a', '--redis', 'r', '--config', 'f'], 'Give only one of --redis and --config.'],
    [['who', 'a', '--redis', URL], '--redis has a password, which other users can see'],
    [['who', 'a', '--redis', 'r', '--redis', URL], '--redis has a password'],
    [['who', 'a', '--postgres', 'postgres://h/app?user=x&password=s3cr3t'], '--postgres has a password'],
    [['who', 'a', `--mysql=${URL}`], '--mysql has a password'],
    [['who', 'a', '--redis', '//ops:s3cr3t@h'], '--redis has a password'],
    [['who', 'a', '--redis', 'redis://h?sentinelPassword=s3cr3t'], '--redis has a password'],
    [['who', 'a', '--mysql', 'mysql://h?pass%77ordSha1=s3cr3t'], '--mysql has a password'],
    [['who', 'a', '--mysql', 'mysql://h/d?ssl={%22passphrase%22:%22s3cr3t%22}'], '--mysql has a password'],
    [['who', 'a', '--redis', '/ops:s3cr3t@h'], '--redis has a password'],
    [['who', 'a', '--zookeeper', 'digest:ops:s3cr3t'], '--zookeeper has a password'],
    [['who', 'a', '--redis', 'r', '--base-path', '/x'], '--base-path goes with --zookeeper.'],
    [['who', 'a', '--mysql', 'm', '--cluster'], '--cluster goes with --redis.'],
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
    const text = withoutSecrets(
      `${URL} failed: ${SECRET}, ${encoded}, hidden; mysql://a:b@c/d`,
      passwordsIn(args),
    );
    expect(text).toBe('redis://***@10.0.0.1:6379 failed: ***, ***, ***; mysql://***@c/d');
    expect(withoutSecrets('hunter22 at //a:b@c', ['hunter2', 'hunter22'])).toBe('*** at //***@c');
  });
});
