/**
 * How a value is written into a key. The table, which any other language can follow:
 *
 * | character                                | written as            |
 * | ---------------------------------------- | --------------------- |
 * | `%`                                      | `%25`                 |
 * | `:`                                      | `%3A`                 |
 * | `{` `}`                                  | `%7B` `%7D`           |
 * | U+0000 to U+001F (newline, tab, NUL, …)  | `%00` to `%1F`        |
 * | U+007F                                   | `%7F`                 |
 * | U+0080 to U+009F                         | `%C2%80` to `%C2%9F`  |
 * | everything else, also space and `<` `>`  | itself, as UTF-8      |
 *
 * That is percent-encoding of the UTF-8 bytes with upper-case digits, for these characters only. Percent-decoding
 * gives the value back, so two values never share a form. `:` separates the parts of a key; `{` and `}` would
 * move a key to another cluster slot; control characters would tear log lines and terminals.
 */
const ESCAPES: readonly (string | undefined)[] = Array.from({ length: 0xa0 }, (_, code) => {
  const isControl = code < 0x20 || code >= 0x7f;
  const character = String.fromCharCode(code);
  return isControl || '%:{}'.includes(character) ? encodeURIComponent(character) : undefined;
});

const isSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdfff;

/**
 * Returns the value in the form for a key; undefined when it is not well-formed. Most values are returned as they are.
 */
export function escapeValue(value: string): string | undefined {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code < ESCAPES.length ? ESCAPES[code] !== undefined : isSurrogate(code)) return escapeFrom(i, value);
  }
  return value;
}

function escapeFrom(start: number, value: string): string | undefined {
  // Half a surrogate pair: UTF-8 has no form for it, so Redis would see U+FFFD instead.
  if (!value.isWellFormed()) return undefined;
  let escaped = '';
  let copied = 0;
  for (let i = start; i < value.length; i++) {
    const escape = ESCAPES[value.charCodeAt(i)];
    if (escape === undefined) continue;
    escaped += value.slice(copied, i) + escape;
    copied = i + 1;
  }
  return escaped + value.slice(copied);
}
