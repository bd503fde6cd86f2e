import { parseArgs } from 'node:util';
import { configFile, readConfig, type Config } from './config.js';
import { passwordsIn } from './secrets.js';
import { UsageError } from './usage-error.js';

export const COMMANDS = ['who', 'list', 'queue', 'unlock'] as const;
export type Command = (typeof COMMANDS)[number];

export interface Invocation extends Config {
  readonly command: Command;
  /** Key; for `list` the prefix of the keys. */
  readonly key: string;
  readonly json: boolean;
  /** Whether `unlock` goes on without a question. */
  readonly yes: boolean;
}

/** Environment variable with a configuration in JSON. */
const CONFIG_OF_ENV = 'NEST_REDIS_LOCK_CONFIG';

const OPTIONS = {
  config: { type: 'string' },
  redis: { type: 'string', multiple: true },
  cluster: { type: 'boolean', default: false },
  postgres: { type: 'string' },
  mysql: { type: 'string' },
  zookeeper: { type: 'string' },
  'base-path': { type: 'string' },
  'key-prefix': { type: 'string' },
  json: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false, short: 'y' },
  help: { type: 'boolean', default: false, short: 'h' },
  version: { type: 'boolean', default: false },
} as const;

const parsed = (args: readonly string[]) => {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // The first sentence names the option; the second one may repeat an argument, which can be an address.
    const [sentence = ''] = (error as Error).message.split(/[.;\n]/);
    throw new UsageError(`${sentence.replace(/^Unknown option '--?([^']*)'.*/, "Unknown option '$1'")}.`);
  }
};

type Values = ReturnType<typeof parsed>['values'];

/** An address may stand where a command belongs, so only a word is repeated. */
const commandOf = (word: string | undefined): Command => {
  const command = COMMANDS.find((one) => one === word);
  if (command) return command;
  const shown = word !== undefined && /^[a-z-]{1,20}$/i.test(word) ? `"${word}" is no command` : 'No command';
  throw new UsageError(`${shown}: there are ${COMMANDS.join(', ')}.`);
};

/** Other users of a machine see the arguments of a process. */
const refusePasswords = (name: string, addresses: readonly string[]): void => {
  if (passwordsIn(addresses).length === 0) return;
  throw new UsageError(
    `--${name} has a password, which other users can see in the arguments of a process. Put the address into a file ` +
      `(--config FILE) or into the environment (${CONFIG_OF_ENV}, or REDIS_URL).`,
  );
};

const configOf = (values: Values, env: NodeJS.ProcessEnv): Config => {
  const { config, redis, postgres, mysql, zookeeper, cluster, 'base-path': basePath } = values;
  const stores = { redis, postgres, mysql, zookeeper, config };
  const given = Object.entries(stores).filter(([, value]) => value !== undefined);
  if (given.length > 1)
    throw new UsageError(`Give only one of ${given.map(([name]) => `--${name}`).join(' and ')}.`);
  for (const [name, value] of given) refusePasswords(name, [value!].flat());
  const [ofEnv, url] = given.length === 0 ? [env[CONFIG_OF_ENV], env['REDIS_URL']] : [];
  const urls = redis ?? (url && !ofEnv ? [url] : undefined);
  if (cluster && !urls) throw new UsageError('--cluster goes with --redis.');
  if (basePath !== undefined && zookeeper === undefined)
    throw new UsageError('--base-path goes with --zookeeper.');
  const at = (address: Config['address']): Config => ({
    address,
    keyPrefix: undefined,
    secrets: passwordsIn(urls ?? []),
  });
  if (config !== undefined) return readConfig(configFile(config), env);
  if (ofEnv) return readConfig({ name: CONFIG_OF_ENV, text: ofEnv, folder: '.' }, env);
  if (urls) return at({ store: 'redis', sources: cluster ? [{ cluster: urls }] : urls });
  if (postgres !== undefined) return at({ store: 'postgres', options: { connectionString: postgres } });
  if (mysql !== undefined) return at({ store: 'mysql', options: { uri: mysql } });
  if (zookeeper !== undefined) return at({ store: 'zookeeper', options: { connect: zookeeper, basePath } });
  throw new UsageError(
    `No store: set REDIS_URL or ${CONFIG_OF_ENV}, or give --config FILE, --redis URL, --postgres URL, --mysql URL or ` +
      '--zookeeper HOSTS.',
  );
};

/**
 * Reads the arguments of the command.
 *
 * @throws UsageError for arguments that mean nothing. Its message contains no address.
 */
export const parseInvocation = (
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Invocation | 'help' | 'version' => {
  const { values, positionals } = parsed(args);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const [word, key, ...more] = positionals;
  const command = commandOf(word);
  if (more.length > 0 || (key === undefined && command !== 'list')) {
    throw new UsageError(
      command === 'list'
        ? 'list has at most one argument: the prefix of the keys.'
        : `${command} needs one key.`,
    );
  }
  if (values.yes && command !== 'unlock') throw new UsageError('--yes goes with unlock.');
  const config = configOf(values, env);
  const keyPrefix = values['key-prefix'] ?? config.keyPrefix;
  return { ...config, command, key: key ?? '', keyPrefix, json: values.json, yes: values.yes };
};
