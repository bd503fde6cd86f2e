/**
 * Texts that have broken quoting, matching, parsing or storage in some program. As keys they are all different. Two
 * that look alike were once taken for the same.
 */
export const HOSTILE_TEXTS: Readonly<Record<string, string>> = {
  'Lua source': `return redis.call('flushall')`,
  'the end of a Lua string': `"]]..redis.call('flushall')--`,
  'the end of a long Lua string': `]==]] return redis.call('flushall') --[==[`,
  'a Lua argument': 'KEYS[1]',
  'a command as it travels': '\r\n*1\r\n$8\r\nFLUSHALL\r\n',
  'the same, as text': '\\r\\n*1\\r\\n$8\\r\\nFLUSHALL\\r\\n',
  'a command as typed': 'order 1\r\nFLUSHALL\r\n',
  'an option': '-1',
  'another number': '-01',
  NUL: 'order\u0000',
  'NUL and more': 'order\u0000:1',
  'control characters': '\u0007\u001b[2J\u009b31m\u007f',
  'what matches everything': '*',
  'what matches other locks': 'lock:*',
  'glob characters': 'orde[qr]?\\*',
  'another key': 'order',
  'another key and a space': 'order ',
  'another key and its end': 'order:1',
  'another key and more of it': 'order:1:lines',
  'the whole name of another key': 'lock:order',
  'a path': '../order/./1',
  'a slot of another key': '{order}',
  'a slot of another key, and more': '{order}:1',
  'a channel': 'redisson_lock__channel:{lock:order}',
  'a fence key': 'nest_redis_lock:fence:{0}',
  'escapes of a template': 'order%3A1',
  'a template': 'order:<<id>>:<<$tenant.id>>',
  'formats and expansions': '%s%n%00 ${order} $(order) `order` {{order}}',
  'quotes and backslashes': `'"\`\\'"`,
  'a name every object has': '__proto__',
  'another of them': 'constructor',
  'accents composed': 'Zoë',
  'accents decomposed': 'Zoë'.normalize('NFD'),
  'capital letters': 'ORDER',
  'letters of another alphabet': 'оrder',
  'invisible letters': 'order\u200b',
  'right to left': '\u202eredro',
  emoji: '🔒',
  'as long as a key can be': 'x'.repeat(65_536),
  'one less': 'x'.repeat(65_535),
};

/** Texts that are no keys, with what the refusal says. */
export const REFUSED_TEXTS: Readonly<Record<string, readonly [string, RegExp]>> = {
  nothing: ['', /is empty/],
  'half a megabyte': ['x'.repeat(512 * 1024), /is 524288 bytes long/],
  'half a character': ['order\ud800', /surrogate/],
  'the other half': ['\udc00order', /surrogate/],
};

/** Texts that could be taken in a cluster, but not released: their braces decide two slots. */
export const REFUSED_BRACES = ['{}', '{}order', 'order}', 'or{der', '}{', '}'] as const;
