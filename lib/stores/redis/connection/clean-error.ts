import { textOf } from '../../../core/errors/describe.js';
import type { RedisLike } from './redis-client.js';

/** How deep the causes of a foreign error are copied. */
const DEEPEST = 4;
/** Shorter ones are in too many words to be taken out of them. */
const SHORTEST_SECRET = 3;

/** Whatever stands before the host of a URL; to the last @ of the line, because a password may have one, and spaces. */
const CREDENTIALS_OF_URL = /\b([a-z][a-z\d+.-]*:\/\/).*@/gi;
/** What Redis says of a command that it does not know, AUTH for one, and cuts somewhere. */
const ECHOED_ARGUMENTS = /,? with args beginning with:.*/gi;

/** What only foreign objects have; reading it may throw. */
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
    // Half a surrogate pair stands in no URL.
    return [];
  }
};

/** The forms in which a text may be written into another one. */
const formsOf = (secret: string): string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  ...encoded(secret),
];

/** The passwords in ioredis options. */
export const secretsOf = (options: unknown): string[] =>
  [peek(options, 'password'), peek(options, 'sentinelPassword')].filter(
    (one): one is string => typeof one === 'string',
  );

/** The passwords that a client has now; they may have changed since it was made. */
export const secretsOfClient = (client: RedisLike): string[] => {
  const auth = peek(peek(client, 'condition'), 'auth');
  const current: unknown = Array.isArray(auth) ? auth.at(-1) : auth;
  return [...secretsOf(client.options), ...(typeof current === 'string' ? [current] : [])];
};

/** A text without credentials: neither those of a URL, nor the given ones. */
export const cleanText = (text: string, secrets: readonly string[]): string => {
  let clean = text.replace(CREDENTIALS_OF_URL, '$1***@').replace(ECHOED_ARGUMENTS, '');
  for (const secret of secrets) {
    if (secret.length < SHORTEST_SECRET) continue;
    for (const form of formsOf(secret)) clean = clean.replaceAll(form, '***');
  }
  return inOurWords(clean).replace('MaxRetriesPerRequestError', 'Error');
};

/** The last argument of AUTH, and of HELLO that has one, is the password which was tried. */
const secretsOfCommand = (command: unknown): string[] => {
  const [name, args] = [peek(command, 'name'), peek(command, 'args')];
  if (typeof name !== 'string' || !/^(auth|hello)$/i.test(name) || !Array.isArray(args)) return [];
  return args.slice(-1).map(String);
};

/** What ioredis says in terms of its own settings, which no user gave, and what has happened. */
const OWN_WORDS: readonly (readonly [RegExp, string])[] = [
  [/Reached the max retries per request limit[^\n]*/, 'the connection was closed before the reply came'],
  [/Command aborted due to connection close[^\n]*/, 'the connection was closed before the reply came'],
  [/Stream isn't writeable[^\n]*/, 'the connection is down'],
  [/Connection is closed\./, 'the connection is closed'],
];

const inOurWords = (text: string): string =>
  OWN_WORDS.reduce((said, [words, meaning]) => said.replace(words, meaning), text);

/** What was thrown, as text; several addresses that were tried in vain have an error each, and no text together. */
const messageOf = (thrown: unknown): string => {
  const several = peek(thrown, 'errors');
  return textOf(thrown) || (Array.isArray(several) ? several.map(textOf).join('; ') : '');
};

/**
 * An error of the client (or of the function that makes clients) as it may be shown and kept: a copy with its name, message,
 * code, stack and the name of the command. ioredis puts the arguments into its errors, and those of AUTH are the password.
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
