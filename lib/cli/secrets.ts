/** Credentials before the host of a URL, up to the last @ of the line: a password may contain @. */
const CREDENTIALS = /((?:[a-z][a-z\d+.-]*:)?\/\/)\S*@/gi;

/** Passwords in an address: before its host, in the digest of ZooKeeper, and in an object in its query, such as keys of TLS. */
const IN_ADDRESS = [/\/[^:/]*:(.*)@/, /\bdigest:[^:]*:(.*)/, /[?&][^=&]*=(\{.*)/];

/** Passwords in the query of a URL: drivers know more names than `password`, such as `sentinelPassword`. */
const IN_QUERY = /[?&][^=&]*(?:passw|passphrase|secret)[^=&]*=([^&#]*)/gi;

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Returns the passwords in addresses, as they stand there and decoded. */
export const passwordsIn = (addresses: readonly string[]): string[] =>
  addresses
    .flatMap((one) => [one, decoded(one)])
    .flatMap((one) => [
      ...IN_ADDRESS.map((pattern) => pattern.exec(one)?.[1]),
      ...Array.from(one.matchAll(IN_QUERY), ([, value]) => value),
    ])
    .flatMap((secret) => (secret ? [secret, decoded(secret)] : []));

/** Returns text without secrets. A secret may be part of another one. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length > 2)
    .sort((one, other) => other.length - one.length)
    .reduce((clean, secret) => clean.replaceAll(secret, '***'), text.replace(CREDENTIALS, '$1***@'));
