/** Credentials before the host of a URL, up to the last @ of the line: a password may contain @. */
const CREDENTIALS = /([a-z][a-z\d+.-]*:\/\/)\S*@/gi;

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
    .flatMap((one) => [/:\/\/[^:]*:(.*)@/.exec(one)?.[1], /[?&]password=([^&]*)/.exec(one)?.[1]])
    .flatMap((secret) => (secret === undefined ? [] : [secret, decoded(secret)]));

/** Returns text without secrets. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length > 2)
    .reduce((clean, secret) => clean.replaceAll(secret, '***'), text.replace(CREDENTIALS, '$1***@'));
