const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (...items: string[]): string => `*${items.length}\r\n${items.join('')}`;
const nested = (depth: number): string => `${'*1\r\n'.repeat(depth)}:1\r\n`;

/** Sound RESP that no script of the library answers, whatever it is asked. */
export const NONSENSE: Readonly<Record<string, string>> = {
  OK: '+OK\r\n',
  'an empty text': bulk(''),
  'a text': bulk('granted'),
  'a text that is a number below zero': bulk('-1'),
  'a text that is half a number': bulk('1.5'),
  'a text that is a number beyond counting': bulk('99999999999999999'),
  'a text of a megabyte': bulk('9'.repeat(1024 * 1024)),
  'a number below all': ':-2\r\n',
  'the smallest number': ':-9223372036854775808\r\n',
  'a number of 400 digits': `:${'9'.repeat(400)}\r\n`,
  'half a number': ',1.5\r\n',
  'an empty list': '*0\r\n',
  'a list of nothing': list('$-1\r\n', '$-1\r\n', '$-1\r\n'),
  'a list of lists': list('*0\r\n', '*0\r\n', '*0\r\n'),
  'a list in a list in a list, 50 deep': nested(50),
  'a list with an error in it': list('-ERR nested\r\n', ':1\r\n'),
  'a list of 100,000': list(...Array.from({ length: 100_000 }, () => ':1\r\n')),
  'a map': '%1\r\n+a\r\n:1\r\n',
};

/** Replies that no script but inspect gives. There they mean that the lock is free. */
export const NOTHING: Readonly<Record<string, string>> = {
  nothing: '$-1\r\n',
  'no list': '*-1\r\n',
  'nothing, as RESP3 says it': '_\r\n',
};

/** Errors of all kinds. */
export const ERRORS: Readonly<Record<string, string>> = {
  'an error': '-ERR no\r\n',
  'an error without a word': '-\r\n',
  'a refusal': '-NOAUTH Authentication required.\r\n',
  'an error of a megabyte': `-ERR ${'x'.repeat(1024 * 1024)}\r\n`,
  'an error that looks like ours': '-FENCE is down\r\n',
};

/** What is no RESP at all. */
export const GARBAGE: Readonly<Record<string, string | Buffer>> = {
  'a type that does not exist': '@x\r\n',
  'an empty line': '\r\n',
  'a list longer than any can be': '*4294967296\r\n',
  'a list 20,000 deep': nested(20_000),
  'a web page': 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n',
  'the end of a TLS handshake': Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46]),
};

/** The beginning of an answer that never comes to an end, and what is no answer. */
export const UNFINISHED: Readonly<Record<string, string>> = {
  'a text of ten gigabytes': '$9999999999\r\nand so on',
  'a list of a billion': '*1000000000\r\n:1\r\n',
  'a push': list('+news', ':1\r\n').replace('*', '>'),
  silence: '',
};
