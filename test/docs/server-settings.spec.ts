import { expect, it } from 'vitest';
import * as mysql from '../../lib/stores/mysql/mysql-settings.js';
import * as postgres from '../../lib/stores/postgres/postgres-settings.js';
import { codeSpans, readFromRoot, section } from '../support/markdown.js';

it.each([
  ['docs/stores/mysql.md', mysql],
  ['docs/stores/postgres.md', postgres],
])(
  '%s lists each setting that a session sets or that the start refuses',
  (page, { SESSION_SETTINGS, REFUSED_SETTINGS }) => {
    const listed = codeSpans(section(readFromRoot(page), 'What it needs'));
    const names = [...SESSION_SETTINGS, ...REFUSED_SETTINGS].map(({ name }) => name);
    expect(names.filter((name) => !listed.includes(name))).toEqual([]);
  },
);
