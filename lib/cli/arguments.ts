import { parseArgs } from 'node:util';

/** Error of the person at the terminal: the message says what to write instead. */
export class UsageError extends Error {}

export const COMMANDS = ['who', 'list', 'queue', 'unlock'] as const;
export type Command = (typeof COMMANDS)[number];

/** Address of the store: exactly one kind. */
export type Address =
  /** Several are the servers of a quorum; with `cluster`, some servers of one Redis Cluster. */
  | { readonly store: 'redis'; readonly urls: readonly string[]; readonly cluster: boolean }
  | { readonly store: 'postgres' | 'mysql'; readonly url: string }
  | { readonly store: 'zookeeper'; readonly hosts: string; readonly basePath: string | undefined };

export interface Invocation {
  readonly command: Command;
  /** Key; for `list` the prefix of the keys. */
  readonly key: string;
  readonly address: Address;
  /** Undefined: the default of the module. */
  readonly keyPrefix: string | undefined;
  readonly json: boolean;
  /** Whether `unlock` goes on without a question. */
  readonly yes: boolean;
}

const OPTIONS = {
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

const addressOf = (values: Values, { REDIS_URL }: NodeJS.ProcessEnv): Address => {
  const { postgres, mysql, zookeeper, cluster, 'base-path': basePath } = values;
  const hasOther = (postgres ?? mysql ?? zookeeper) !== undefined;
  const redis = values.redis ?? (REDIS_URL && !hasOther ? [REDIS_URL] : undefined);
  const given = Object.entries({ redis, postgres, mysql, zookeeper }).filter(
    ([, value]) => value !== undefined,
  );
  if (given.length !== 1) {
    throw new UsageError(
      given.length === 0
        ? 'No store: set REDIS_URL, or give --redis URL, --postgres URL, --mysql URL or --zookeeper HOSTS.'
        : `Give only one of ${given.map(([name]) => `--${name}`).join(' and ')}.`,
    );
  }
  if (cluster && !redis) throw new UsageError('--cluster goes with --redis.');
  if (basePath !== undefined && zookeeper === undefined)
    throw new UsageError('--base-path goes with --zookeeper.');
  if (redis) return { store: 'redis', urls: redis, cluster };
  if (postgres !== undefined) return { store: 'postgres', url: postgres };
  if (mysql !== undefined) return { store: 'mysql', url: mysql };
  return { store: 'zookeeper', hosts: zookeeper!, basePath };
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
  return {
    command,
    key: key ?? '',
    address: addressOf(values, env),
    keyPrefix: values['key-prefix'],
    json: values.json,
    yes: values.yes,
  };
};
