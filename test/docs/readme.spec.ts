import 'reflect-metadata';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as lib from 'nest-redis-lock';
import * as libTesting from 'nest-redis-lock/testing';
import type ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS } from '../../lib/core/settings/lock-settings.js';
import { escapeValue } from '../../lib/key/escape.js';
import { resolveInterceptor, resolveOptions } from '../../lib/redis-lock.options.js';
import { httpExceptionOf } from '../../lib/transport/lock-error-mapping.js';
import { complaints, examplesOf, literalsOf, programOf, membersOf } from './examples.js';
import { anchors, codeBlocks, codeSpans, links, readFromRoot, section, tableRows } from './markdown.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const README = readFromRoot('README.md');
const examples = examplesOf(codeBlocks(README, 'ts'));

describe('README', () => {
  let program: ts.Program;

  beforeAll(() => {
    program = programOf(examples);
  });

  it('has TypeScript examples that compile against the library', () => {
    expect(examples.length).toBeGreaterThan(8);
    expect(complaints(program, examples)).toEqual([]);
  });

  it.each([
    ['lib/redis-lock.options.ts', 'RedisLockModuleOptions', 'Options'],
    ['lib/redis-lock.options.ts', 'LockInterceptorOptions', 'Options'],
    ['lib/redis-lock.options.ts', 'RedisLockModuleExtras', 'Options'],
    ['lib/locked/locked.options.ts', 'LockedOptions', 'Options'],
    ['lib/testing/redis-lock-testing.module.ts', 'RedisLockTestingOptions', 'Testing'],
    ['lib/core/lock-events.ts', 'LockEvents', 'Events'],
    ['lib/core/lease/lease.ts', 'Lease', 'LockService'],
    ['lib/lock.service.ts', 'Service', 'LockService'],
  ])('names everything of %s: %s in the section "%s"', (file, type, heading) => {
    // What is inherited from the module's settings is described there.
    const text =
      heading === 'Testing'
        ? section(README, 'Options') + section(README, heading)
        : section(README, heading);
    const named = new Set(codeSpans(text).flatMap((code) => code.match(/[\w-]+/g) ?? []));
    const missing = membersOf(program, file, type).filter((name) => !named.has(name));
    expect(missing).toEqual([]);
  });

  it('gives the defaults that the library has', () => {
    const { commandTimeoutMs } = resolveOptions({ redis: 'redis://localhost' });
    const defaults = { ...DEFAULT_SETTINGS, commandTimeoutMs, interceptor: true };
    const [moduleTable = ''] = section(README, 'Options').split('**`forRootAsync`**');
    const told = Object.fromEntries(
      tableRows(moduleTable).map(([option = '', value = '']) => [codeSpans(option)[0]!, value]),
    );
    const words: Record<string, string> = { leaseMs: 'none', maxWaiters: 'no limit', onLost: "`'event'`" };
    const shown = (name: string, value: unknown): string =>
      words[name] ??
      (typeof value === 'number'
        ? value.toLocaleString('en')
        : name === 'keyPrefix'
          ? `\`${String(value)}\``
          : String(value));
    const { excludes: _forTests, ...settings } = defaults;
    for (const [name, value] of Object.entries(settings))
      expect.soft([name, told[name]]).toEqual([name, shown(name, value)]);
    const { takenStatus, retryAfterSeconds } = resolveInterceptor();
    expect(moduleTable).toContain(`(${takenStatus} and ${retryAfterSeconds})`);
  });

  it('lists every error code with its class and its HTTP status', () => {
    const codes = literalsOf(
      program,
      'lib/core/errors/lock.errors.ts',
      'LockErrorCode',
    ) as lib.LockErrorCode[];
    const rows = tableRows(section(README, 'Errors'));
    expect(rows.map(([code = '']) => codeSpans(code)[0]).sort()).toEqual([...codes].sort());
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

  it('lists every event with its payload, and every reason of a loss', () => {
    const rows = tableRows(section(README, 'Events'));
    expect(rows.map(([event = '']) => codeSpans(event)[0])).toEqual(
      membersOf(program, 'lib/core/lock-events.ts', 'LockEvents'),
    );
    const reasons = literalsOf(program, 'lib/core/lock-events.ts', 'LossReason');
    expect(codeSpans(section(README, 'Events'))).toEqual(expect.arrayContaining(reasons));
  });

  it('names every function and class that the package exports', () => {
    const internal = ['KIND_TRAITS', 'StoreFailure', 'RedisStore', 'LockInterceptor', 'getLockServiceToken'];
    const exported = [...Object.keys(lib), ...Object.keys(libTesting)].filter(
      (name) => !internal.includes(name),
    );
    expect(exported.filter((name) => !README.includes(name))).toEqual([]);
  });

  it('has the escape table of the library', () => {
    const rows = tableRows(section(README, 'Keys'));
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

  it('quotes log lines that the library writes', () => {
    const source = librarySource();
    const quoted = tableRows(section(README, 'At 3 a.m.')).map(([line = '']) => codeSpans(line)[0]!);
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
});

describe('documents', () => {
  const inDecisions = readdirSync(join(ROOT, 'docs/decisions')).sort();
  const decisions = inDecisions.filter((name) => name !== 'README.md');
  const documents = [
    ...['README.md', 'CONTRIBUTING.md', 'AGENTS.md', 'CHANGELOG.md', 'SECURITY.md', '.changeset/README.md'],
    ...inDecisions.map((name) => `docs/decisions/${name}`),
  ];

  it.each(documents)('%s has only links that lead somewhere', (document) => {
    const folder = join(ROOT, document, '..');
    const dead = links(readFromRoot(document)).filter((target) => {
      if (/^[a-z]+:/.test(target)) return false;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? join(ROOT, document) : join(folder, path);
      if (!existsSync(file)) return true;
      return anchor !== undefined && !anchors(readFromRoot(file.slice(ROOT.length))).includes(anchor);
    });
    expect(dead).toEqual([]);
  });

  it.each(documents)('%s names only files and npm scripts that exist', (document) => {
    const { scripts } = JSON.parse(readFromRoot('package.json')) as { scripts: Record<string, string> };
    const spans = codeSpans(readFromRoot(document));
    const commands = spans.flatMap((code) =>
      [...code.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!),
    );
    expect(commands.filter((name) => !(name in scripts))).toEqual([]);
    const paths = spans.filter((code) => /^(lib|test|sample-app|docs|\.ci)\/[\w./-]*$/.test(code));
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('has decisions with a number each, a context, a decision and its consequences', () => {
    expect(decisions.map((name) => Number(name.slice(0, 4)))).toEqual(decisions.map((_, at) => at + 1));
    for (const name of decisions) {
      const text = readFromRoot(`docs/decisions/${name}`);
      for (const heading of ['Context', 'Decision', 'Consequences'])
        expect.soft(text, name).toContain(`\n## ${heading}\n`);
    }
  });

  it('has an index of the decisions: each one under its title, with its dates and its status', () => {
    const rows = tableRows(readFromRoot('docs/decisions/README.md'));
    const titles = decisions.map((name) => {
      const [title = ''] = readFromRoot(`docs/decisions/${name}`).split('\n');
      return `[${title.replace('# ', '')}](${name})`;
    });
    expect(rows.map(([title]) => title)).toEqual(titles);
    const date = expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as unknown;
    for (const row of rows) {
      expect.soft(row).toEqual([row[0], date, date, expect.stringMatching(/^(in force|superseded by)/)]);
    }
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
