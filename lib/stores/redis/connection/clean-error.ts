import { textOf } from '../../../core/util/describe.js';
import type { RedisLike } from './redis-client.js';

/** Maximum depth to which the causes of a foreign error are copied. */
const DEEPEST = 4;
/** Minimum length of a secret, in characters: a shorter one occurs in too many other words to be replaced. */
const SHORTEST_SECRET = 3;

/** Credentials before the host of a URL, up to the last @ of the line: a password may contain @ and spaces. */
const CREDENTIALS_OF_URL = /\b([a-z][a-z\d+.-]*:\/\/).*@/gi;
/** Arguments that Redis repeats when it does not know a command, AUTH for example. Redis may cut them off anywhere. */
const ECHOED_ARGUMENTS = /,? with args beginning with:.*/gi;

/** Reads a property of a foreign object, whose getter may throw. */
const peek = (value: unknown, name: string): unknown => {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[name];
  } catch {
    return undefined;
  }
};

const encoded = (secret: string): string[] => {
  try {
    return [encodeURIComponent(secret), encodeURI(secret)];
  } catch {
    // A lone surrogate cannot be encoded, so it occurs in no URL.
    return [];
  }
};

/** Returns the forms in which a secret may occur in another text. */
const formsOf = (secret: string): string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  ...encoded(secret),
];

export const secretsOf = (options: unknown): string[] =>
  [peek(options, 'password'), peek(options, 'sentinelPassword')].filter(
    (one): one is string => typeof one === 'string',
  );

/** Returns the current passwords of a client; they may have changed since it was created. */
export const secretsOfClient = (client: RedisLike): string[] => {
  const auth = peek(peek(client, 'condition'), 'auth');
  const current: unknown = Array.isArray(auth) ? auth.at(-1) : auth;
  return [...secretsOf(client.options), ...(typeof current === 'string' ? [current] : [])];
};

/** Removes the credentials of URLs and the given secrets from a text. */
export const cleanText = (text: string, secrets: readonly string[]): string => {
  let clean = text.replace(CREDENTIALS_OF_URL, '$1***@').replace(ECHOED_ARGUMENTS, '');
  for (const secret of secrets) {
    if (secret.length < SHORTEST_SECRET) continue;
    for (const form of formsOf(secret)) clean = clean.replaceAll(form, '***');
  }
  return inOurWords(clean).replace('MaxRetriesPerRequestError', 'Error');
};

/** Returns the password that AUTH or HELLO has tried: its last argument. */
const secretsOfCommand = (command: unknown): string[] => {
  const [name, args] = [peek(command, 'name'), peek(command, 'args')];
  if (typeof name !== 'string' || !/^(auth|hello)$/i.test(name) || !Array.isArray(args)) return [];
  return args.slice(-1).map(String);
};

/** Errors in which ioredis names its own settings, which no user gave, and the event behind each. */
const OWN_WORDS: readonly (readonly [RegExp, string])[] = [
  [/Reached the max retries per request limit[^\n]*/, 'the connection was closed before the reply came'],
  [/Command aborted due to connection close[^\n]*/, 'the connection was closed before the reply came'],
  [/Stream isn't writeable[^\n]*/, 'the connection is down'],
  [/Connection is closed\./, 'the connection is closed'],
];

const inOurWords = (text: string): string =>
  OWN_WORDS.reduce((said, [words, meaning]) => said.replace(words, meaning), text);

/** Returns the text of a thrown value. An error of several failed addresses has only the texts of its parts. */
const messageOf = (thrown: unknown): string => {
  const several = peek(thrown, 'errors');
  return textOf(thrown) || (Array.isArray(several) ? several.map(textOf).join('; ') : '');
};

/**
 * Copies an error of the client, or of the function that creates clients, for logs and callers. The copy has the name,
 * message, code, stack and causes, and the name of the command. The original must not be kept: ioredis puts the
 * arguments into its errors, and the argument of AUTH is the password.
 */
export const cleanError = (thrown: unknown, known: readonly string[], depth = 0): Error => {
  const command = peek(thrown, 'command');
  const secrets = [...known, ...secretsOfCommand(command)];
  const copy = new Error(cleanText(messageOf(thrown), secrets));
  const [name, code, stack] = [peek(thrown, 'name'), peek(thrown, 'code'), peek(thrown, 'stack')];
  const define = (property: string, value: unknown): void =>
    void Object.defineProperty(copy, property, { value, configurable: true, writable: true });
  if (typeof name === 'string') define('name', cleanText(name, secrets));
  if (typeof stack === 'string') define('stack', cleanText(stack, secrets));
  if (typeof code === 'string') Object.assign(copy, { code: cleanText(code, secrets) });
  const commandName = peek(command, 'name');
  if (typeof commandName === 'string') Object.assign(copy, { command: { name: commandName } });
  const cause = peek(thrown, 'cause');
  if (cause !== undefined && depth < DEEPEST) define('cause', cleanError(cause, secrets, depth + 1));
  return copy;
};
