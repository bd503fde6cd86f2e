import 'reflect-metadata';
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as lib from 'nest-redis-lock';
import * as libFencing from 'nest-redis-lock/fencing';
import * as libRedis from 'nest-redis-lock/redis';
import * as libStore from 'nest-redis-lock/store';
import * as libTesting from 'nest-redis-lock/testing';
import type ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS } from '../../lib/core/settings/lock-settings.js';
import { KINDS } from '../../lib/core/kinds/kinds.js';
import { escapeValue } from '../../lib/key/escape.js';
import { UNREAD_STREAM_MS } from '../../lib/nest/locked/reading.js';
import { resolveInterceptor } from '../../lib/nest/module/redis-lock.options.js';
import { LockPaths } from '../../lib/stores/zookeeper/lock-path.js';
import { resolveBasePath } from '../../lib/stores/zookeeper/zookeeper-options.js';
import { httpExceptionOf } from '../../lib/nest/transport/lock-error-mapping.js';
import {
  DOCUMENTED_RULES,
  FAIR_RULES,
  LIST_RULES,
  PERMIT_RULES,
  READ_WRITE_RULES,
} from '../support/redis/documented-user.js';
import { complaints, examplesOf, fieldsOf, literalsOf, membersOf, programOf } from './examples.js';
import { codeBlocks, codeSpans, readFromRoot, section, tables, type Table } from '../support/markdown.js';
import { DOCUMENTATION, examplesOnPages, page, PAGES, tablesOf } from './pages.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const README = page('README.md');
const CONFIGURATION = 'docs/guide/configuration.md';
/** The tables of all options, by task. */
const OPTIONS = section(page(CONFIGURATION), 'All options');
const OPTION_TABLES = tables(OPTIONS);
const examples = examplesOf(examplesOnPages());

/** The columns of the table of options, and the types whose members may be given there. */
const PLACES: Readonly<Record<string, readonly (readonly [file: string, type: string])[]>> = {
  '`forRoot`': [
    ['lib/nest/module/redis-lock.options.ts', 'RedisLockModuleOptions'],
    ['lib/nest/module/redis-lock.options.ts', 'RedisLockModuleExtras'],
  ],
  '`@Locked`': [['lib/nest/locked/locked.options.ts', 'LockedOptions']],
  '`@Limited`': [['lib/nest/locked/locked.options.ts', 'LimitedOptions']],
  '`withLock`': [['lib/core/settings/acquire-options.ts', 'SectionOptions']],
  '`acquire`': [['lib/core/settings/acquire-options.ts', 'AcquireOptions']],
  '`permits`': [
    ['lib/core/settings/acquire-options.ts', 'PermitsOptions'],
    ['lib/core/settings/acquire-options.ts', 'PermitSectionOptions'],
  ],
};
const TESTING_OPTIONS = ['lib/testing/testing-options.ts', 'RedisLockTestingOptions'] as const;
const REDIS_OPTIONS = ['lib/stores/redis/redis.store.ts', 'RedisStoreOptions'] as const;
const MYSQL_OPTIONS = ['lib/stores/mysql/mysql.store.ts', 'MysqlStoreOptions'] as const;
const POSTGRES_OPTIONS = ['lib/stores/postgres/postgres.store.ts', 'PostgresStoreOptions'] as const;
const OPENTELEMETRY_OPTIONS = [
  'lib/opentelemetry/instrumentation-config.ts',
  'RedisLockInstrumentationConfig',
] as const;
const LIST_OPTIONS = ['lib/core/service/listing.ts', 'ListOptions'] as const;
const ZOOKEEPER_OPTIONS = ['lib/stores/zookeeper/zookeeper.store.ts', 'ZooKeeperStoreOptions'] as const;

/** The pages of the objects without a holder, and of what is built on a kind. */
const OBJECTS = ['semaphore', 'countdown-latch', 'leader'];

/** What is written as code in a text, in words. */
const wordsIn = (text: string): Set<string> =>
  new Set(codeSpans(text).flatMap((code) => code.match(/[\w-]+/g) ?? []));

const firstSpans = (rows: readonly (readonly string[])[]): string[] =>
  rows.map(([cell = '']) => codeSpans(cell)[0]!);

/** The options of the library by name, each with the columns of the table that have a tick. */
const ticksOf = (program: ts.Program): Map<string, string[]> => {
  const ticks = new Map<string, string[]>();
  for (const [place, types] of Object.entries(PLACES)) {
    for (const name of new Set(types.flatMap(([file, type]) => membersOf(program, file, type))))
      ticks.set(name, [...(ticks.get(name) ?? []), place]);
  }
  return ticks;
};

describe('the documentation', () => {
  let program: ts.Program;

  beforeAll(() => {
    program = programOf(examples);
  });

  it('has TypeScript examples that compile against the library', () => {
    expect(examples.length).toBeGreaterThan(12);
    expect(complaints(program, examples)).toEqual([]);
  });

  it('has other TypeScript only on pages whose snippets an app of test/package compiles', () => {
    const folder = join(ROOT, 'test/package');
    const specs = readdirSync(folder).filter((name) => name.endsWith('.spec.ts'));
    const compiled = specs.map((name) => readFromRoot(`test/package/${name}`)).join('\n');
    const pages = PAGES.filter(({ text }) => codeBlocks(text, 'typescript').length > 0);
    expect(pages.length).toBeGreaterThan(0);
    expect(pages.filter(({ path }) => !compiled.includes(basename(path))).map(({ path }) => path)).toEqual(
      [],
    );
  });

  it.each([
    ['lib/nest/module/redis-lock.options.ts', 'LockInterceptorOptions', CONFIGURATION],
    [...TESTING_OPTIONS, 'docs/guide/testing.md'],
    [...MYSQL_OPTIONS, 'docs/stores/mysql.md'],
    [...POSTGRES_OPTIONS, 'docs/stores/postgres.md'],
    [...ZOOKEEPER_OPTIONS, 'docs/stores/zookeeper.md'],
    [...OPENTELEMETRY_OPTIONS, 'docs/operations/telemetry.md'],
    [...LIST_OPTIONS, 'docs/guide/lock-service.md'],
    ['lib/nest/service/run-or-delay.ts', 'RunOrDelayOptions', 'docs/guide/job-queues.md'],
    ['lib/core/service/listing.ts', 'ListedLock', 'docs/guide/lock-service.md'],
    ['lib/core/service/listing.ts', 'LockList', 'docs/guide/lock-service.md'],
    ['lib/core/report/lock-events.ts', 'LockEvents', 'docs/operations/events.md'],
    ['lib/core/lease/lease.ts', 'Lease', 'docs/guide/lock-service.md'],
    ['lib/core/service/held-locks.ts', 'LockUsage', 'docs/guide/lock-service.md'],
    ['lib/core/objects/semaphore.ts', 'Semaphore', 'docs/locks/semaphore.md'],
    ['lib/core/objects/count-down-latch.ts', 'CountDownLatch', 'docs/locks/countdown-latch.md'],
    ['lib/core/settings/object-call.ts', 'WaitOptions', 'docs/locks/semaphore.md'],
    ['lib/nest/leader/leader.options.ts', 'LeaderOptions', 'docs/locks/leader.md'],
    ['lib/nest/leader/leadership.ts', 'Leadership', 'docs/locks/leader.md'],
    ['lib/nest/leader/candidate.ts', 'Candidate', 'docs/locks/leader.md'],
    ['lib/stores/memory/memory-space.ts', 'MemorySpaceOptions', 'docs/stores/memory.md'],
  ])('names everything of %s: %s in %s', (file, type, path) => {
    // What is inherited from the module's settings is described there.
    const named = wordsIn(OPTIONS + page(path));
    expect(membersOf(program, file, type).filter((name) => !named.has(name))).toEqual([]);
  });

  it('names every method of the service on its page', () => {
    const named = wordsIn(section(page('docs/guide/lock-service.md'), 'Methods'));
    expect(
      membersOf(program, 'lib/nest/service/lock.service.ts', 'LockService').filter(
        (name) => !named.has(name),
      ),
    ).toEqual([]);
  });

  it('has each option in one table, with a tick for each place that takes it', () => {
    const ticked = OPTION_TABLES.flatMap(({ head, rows }) =>
      rows.map(([option = '', ...cells]): [string, string[]] => [
        codeSpans(option)[0]!,
        head.slice(1).filter((_, column) => cells[column] === '✓'),
      ]),
    );
    expect(ticked).toHaveLength(ticksOf(program).size);
    expect(Object.fromEntries(ticked)).toEqual(Object.fromEntries(ticksOf(program)));
  });

  it('names no option in another table that the library does not have', () => {
    const known = [
      ...ticksOf(program).keys(),
      ...membersOf(program, ...TESTING_OPTIONS),
      ...membersOf(program, 'lib/testing/lose-everywhere.ts', 'LoseEverywhereOptions'),
      ...membersOf(program, ...REDIS_OPTIONS),
      ...membersOf(program, ...MYSQL_OPTIONS),
      ...membersOf(program, ...POSTGRES_OPTIONS),
      ...membersOf(program, ...ZOOKEEPER_OPTIONS),
      ...membersOf(program, ...OPENTELEMETRY_OPTIONS),
      ...membersOf(program, ...LIST_OPTIONS),
    ];
    const named = tablesOf('option').flatMap(({ rows }) => firstSpans(rows));
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('names no duration that the library does not know', () => {
    const source = librarySource();
    const durations = [...wordsIn(DOCUMENTATION)].filter((word) => /^(?:[a-z]\w*Ms|[A-Z_]+_MS)$/.test(word));
    expect(durations).toContain('waitMs');
    expect(durations.filter((name) => !new RegExp(`\\b${name}\\b`).test(source))).toEqual([]);
  });

  it('gives the defaults that the library has', () => {
    const defaults = { ...DEFAULT_SETTINGS, interceptor: true };
    const defaultsIn = ({ head, rows }: Table): Record<string, string> =>
      Object.fromEntries(
        rows.map((cells) => [codeSpans(cells[0]!)[0] ?? '', cells[head.indexOf('default')]!]),
      );
    const documented = Object.assign({}, ...OPTION_TABLES.map(defaultsIn)) as Record<string, string>;
    const { '': _more, onBusy: _waits, ...inReadme } = defaultsIn(tables(section(README, 'Options'))[0]!);
    expect(documented).toMatchObject(inReadme);
    const words: Record<string, string> = {
      leaseMs: 'none',
      maxHoldMs: 'no limit',
      maxWaiters: 'no limit',
      slowHoldMs: 'never',
      appName: 'in package.json',
      redactKey: 'none',
      onLost: "`'event'`",
    };
    const formatValue = (name: string, value: unknown): string =>
      words[name] ??
      (typeof value === 'number'
        ? value.toLocaleString('en')
        : name === 'keyPrefix'
          ? `\`${String(value)}\``
          : String(value));
    const { excludes: _forTests, maxWaitMs: _ofTests, minWatchdogMs: _follows, ...settings } = defaults;
    for (const [name, value] of Object.entries(settings))
      expect.soft([name, documented[name]]).toEqual([name, formatValue(name, value)]);
    const { takenStatus, retryAfterSeconds } = resolveInterceptor();
    expect(OPTIONS).toContain(`(${takenStatus} and ${retryAfterSeconds ?? 'as measured'})`);
  });

  it('lists every error code in one table, with its class and its HTTP status', () => {
    const codes = literalsOf(
      program,
      'lib/core/errors/lock.errors.ts',
      'LockErrorCode',
    ) as lib.LockErrorCode[];
    const rows = tablesOf('code').flatMap((table) => table.rows);
    expect(firstSpans(rows).sort()).toEqual([...codes].sort());
    for (const [codeCell = '', classCell = '', status] of rows) {
      const code = codeSpans(codeCell)[0] as lib.LockErrorCode;
      const className = codeSpans(classCell)[0]!;
      expect.soft((lib as Record<string, unknown>)[className], className).toBeTypeOf('function');
      const mapped = httpExceptionOf(
        new lib.LockError(code, 'x'),
        { getType: () => 'rpc', switchToHttp: undefined! } as never,
        resolveInterceptor(),
      );
      expect.soft([code, String(mapped.getStatus())]).toEqual([code, status]);
    }
  });

  it('names no error code and no error class that the library does not have', () => {
    const codes = literalsOf(program, 'lib/core/errors/lock.errors.ts', 'LockErrorCode');
    const namedCodes = DOCUMENTATION.match(/\bLOCK_[A-Z_]+\b/g) ?? [];
    expect(namedCodes.filter((code) => !codes.includes(code))).toEqual([]);
    const classes = [...wordsIn(DOCUMENTATION)].filter((word) =>
      /^(Lock|Store)\w*(Error|Failure)$/.test(word),
    );
    expect(classes).toContain('LockStoreError');
    expect(classes.filter((name) => !(name in lib) && !(name in libStore))).toEqual([]);
  });

  it('lists every event in one table with its payload, and every reason of a loss', () => {
    const rows = tablesOf('event').flatMap((table) => table.rows);
    const events = membersOf(program, 'lib/core/report/lock-events.ts', 'LockEvents');
    expect(firstSpans(rows)).toEqual(events);
    const reasons = literalsOf(program, 'lib/core/errors/lock.errors.ts', 'LossReason');
    expect(rows.flatMap((cells) => codeSpans(cells.join(' ')))).toEqual(expect.arrayContaining(reasons));
    for (const [event = '', payload = ''] of rows) {
      const fields = fieldsOf(program, 'lib/core/report/lock-events.ts', 'LockEvents', codeSpans(event)[0]!);
      expect.soft(codeSpans(payload).sort(), event).toEqual(fields.sort());
    }
  });

  it('names every function and class that the package exports', () => {
    const exported = [lib, libFencing, libRedis, libStore, libTesting].flatMap((entry) => Object.keys(entry));
    expect(exported.filter((name) => !DOCUMENTATION.includes(name))).toEqual([]);
  });

  it('has the escape table of the library', () => {
    const rows = tablesOf('character in a value').flatMap((table) => table.rows);
    const escaped = new Map<number, string>();
    for (const [characters = '', forms = ''] of rows.slice(0, -1)) {
      const [first = '', last = first] = codeSpans(characters);
      const [firstForm = '', lastForm = firstForm] = codeSpans(forms);
      const [from, to] = [codeOf(first), codeOf(last)];
      for (let code = from; code <= to; code++) escaped.set(code, percentEncoded(code));
      expect([escaped.get(from), escaped.get(to)]).toEqual([firstForm, lastForm]);
    }
    expect(rows.at(-1)![1]).toBe('itself');
    const wrong: number[] = [];
    for (let code = 0; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const character = String.fromCodePoint(code);
      if (escapeValue(character) !== (escaped.get(code) ?? character)) wrong.push(code);
    }
    expect(wrong).toEqual([]);
    expect(lib.lockKey('order:<<id>>', { id: 'a:b' })).toBe('order:a%3Ab');
  });

  it('quotes log lines that the library writes, in one table', () => {
    const source = librarySource();
    const [table, ...more] = tablesOf('log line');
    expect(more).toEqual([]);
    const quoted = firstSpans(table!.rows);
    expect(quoted.length).toBeGreaterThan(5);
    for (const line of quoted) {
      const pieces = line
        .split('…')
        .map((piece) => piece.replace(/^[ :]+/, '').trim())
        .filter((piece) => /[a-z]{2}/.test(piece));
      expect(pieces.length).toBeGreaterThan(0);
      for (const piece of pieces) expect.soft(source.includes(piece), piece).toBe(true);
    }
  });

  it('says how long a returned stream may stay unread', () => {
    const streams = section(page('docs/guide/streams.md'), 'An unread stream');
    expect(streams).toContain(`within ${UNREAD_STREAM_MS / 1_000} s`);
    expect(codeSpans(streams)).toContain('UNREAD_STREAM_MS');
  });

  it('has a page for each kind of lock, for each store, and for each set-up of Redis', () => {
    const pagesOf = (folder: string): string[] =>
      readdirSync(join(ROOT, 'docs', folder)).map((name) => name.replace(/\.md$/, ''));
    const kinds = Object.keys(KINDS).map((kind) => (/^(read|write)$/.test(kind) ? 'read-write' : kind));
    expect(pagesOf('locks').sort()).toEqual([...new Set([...kinds, ...OBJECTS])].sort());
    expect(pagesOf('stores').sort()).toEqual(
      [
        ...readdirSync(join(ROOT, 'lib/stores')).filter((name) => !/\.ts$|^load$|^sql$/.test(name)),
        'cluster',
        'quorum',
        'sentinel',
        'writing-a-store',
      ].sort(),
    );
  });

  it('gives Java the paths that the ZooKeeper store uses', () => {
    const [, { rows }] = tables(page('docs/operations/curator.md')) as [Table, Table];
    const paths = rows.map(([prefix = '', base = '', java = '']) => {
      const [keyPrefix, basePath] = [prefix, base].map((cell) => codeSpans(cell)[0]!.replace("''", ''));
      const isDefault = prefix.includes('default');
      expect(isDefault ? keyPrefix : '').toBe(isDefault ? DEFAULT_SETTINGS.keyPrefix : '');
      const locks = new LockPaths(
        '',
        resolveBasePath(base.includes('default') ? undefined : basePath),
        undefined,
      );
      expect(locks.basePath).toBe(basePath);
      expect(java).toContain(`"${locks.of(`${keyPrefix}order:42`)}"`);
      return java;
    });
    expect(paths).toHaveLength(3);
  });

  it('tells who writes a store all that a store has', () => {
    const [ofStore, ofKind] = tables(page('docs/stores/writing-a-store.md'));
    const seam = 'lib/core/seam/lock-store.ts';
    expect(firstSpans(ofStore!.rows).sort()).toEqual(membersOf(program, seam, 'LockStore').sort());
    expect(firstSpans(ofKind!.rows).sort()).toEqual(membersOf(program, seam, 'KindStore').sort());
  });

  it('says of each command of the ACL user what happens without it', () => {
    const documented = tables(page('docs/operations/permissions.md')).flatMap(({ rows }) =>
      rows.flatMap(([commands = '']) => codeSpans(commands)),
    );
    const all = [DOCUMENTED_RULES, PERMIT_RULES, FAIR_RULES, READ_WRITE_RULES, LIST_RULES].flat();
    const rules = [...new Set(all)].filter((rule) => rule.startsWith('+'));
    expect(documented.map((command) => `+${command.toLowerCase().replace(' ', '|')}`).sort()).toEqual(
      rules.sort(),
    );
  });
});

/** The code point of `%` or `U+001F`. */
const codeOf = (text: string): number =>
  text.startsWith('U+') ? Number.parseInt(text.slice(2), 16) : text.codePointAt(0)!;

const percentEncoded = (code: number): string =>
  [...Buffer.from(String.fromCodePoint(code))]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');

/** All code of the library, with strings that are split over lines put together again. */
const librarySource = (): string =>
  readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFromRoot(`lib/${name}`))
    .join('\n')
    .replace(/['`] \+\s+['`]/g, '');
