import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { migrationOf } from '../../lib/stores/mysql/mysql-migration.js';
import { repository } from '../support/package/pack.js';

it.each(['docs/sql/nest_lock.mysql.sql', 'docs/stores/mysql.md'])(
  '%s has the table that the store creates',
  (path) => {
    const text = readFileSync(join(repository, path), 'utf8');
    expect(text).toContain(`${migrationOf('nest_lock')};\n`);
  },
);
