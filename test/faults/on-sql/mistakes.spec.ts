import { AssertionError } from 'node:assert';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Lane } from '../../../lib/stores/sql/lane.js';
import { SqlFailure } from '../../../lib/stores/sql/sql.js';
import { MysqlStore } from '../../../lib/stores/mysql/mysql.store.js';
import { PostgresStore } from '../../../lib/stores/postgres/postgres.store.js';
import type { SqlStore } from '../../../lib/stores/sql/sql.store.js';
import { SQL_MISTAKES, type SqlMistake } from '../../mistakes/table/sql.mistakes.js';
import { SQL_TOGETHER_MISTAKES } from '../../mistakes/table/sql-together.mistakes.js';
import { LANE_MISTAKES, type LaneLibrary } from '../../mistakes/table/lane.mistakes.js';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { PostgresLab } from '../../support/postgres/postgres-lab.js';
import type { SqlLab, SqlStoreOptions } from '../../support/sql/sql-lab.js';
import { SqlStage } from './sql-stage.js';

const INTACT = { MysqlStore, PostgresStore };

type Library = typeof INTACT;

interface Database {
  readonly name: keyof SqlMistake['edits'];
  readonly store: keyof Library;
  start(): Promise<SqlLab>;
  make(library: Library, uri: string, options: SqlStoreOptions): SqlStore;
}

const DATABASES: readonly Database[] = [
  {
    name: 'mysql',
    store: 'MysqlStore',
    start: () => MysqlLab.start(),
    make: (library, uri, options) => new library.MysqlStore({ uri, ...options }),
  },
  {
    name: 'postgres',
    store: 'PostgresStore',
    start: () => PostgresLab.start(),
    make: (library, uri, options) => new library.PostgresStore({ connectionString: uri, ...options }),
  },
];

/** A schedule shows the mistake, or the broken library finds it when it starts. */
const isNoticed = (error: Error): boolean =>
  error instanceof AssertionError || error.message.includes('is not as it was created');

describe.each(DATABASES)('in $store', ({ name, store, start, make }) => {
  let lab: SqlLab;
  beforeAll(async () => {
    lab = await start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  const mistakes = [...SQL_MISTAKES, ...SQL_TOGETHER_MISTAKES].flatMap(
    ({ edits: { [name]: edits }, ...mistake }) => (edits ? [{ ...mistake, edits }] : []),
  );

  const play = async (library: Library, mistake: Pick<SqlMistake, 'play'>): Promise<void> => {
    await using stage = new SqlStage(lab, (options) => make(library, lab.server.uri, options));
    await mistake.play(stage);
  };

  describe('a mistake is noticed in a copy of the library', () => {
    it.each(mistakes)('$name', async (mistake) => {
      using library = breakLibrary(mistake.name, mistake.edits);
      const broken = await library.load<Library>(store);
      await expect(play(broken, mistake)).rejects.toSatisfy(isNoticed);
    });
  });

  describe('and nothing in the library as it is, when the same is done to it', () => {
    it.each(mistakes)('$name', async (mistake) => {
      await play(INTACT, mistake);
    });
  });
});

describe('in a lane, which needs no server', () => {
  it.each(LANE_MISTAKES)('$name', async ({ name, edits, play }) => {
    using library = breakLibrary(name, edits);
    const broken = await library.load<LaneLibrary>('Lane', 'SqlFailure');
    await expect(play(broken)).rejects.toThrow(AssertionError);
    await play({ Lane, SqlFailure });
  });
});
