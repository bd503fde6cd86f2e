import { AssertionError } from 'node:assert';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MysqlStore } from '../../../lib/stores/mysql/mysql.store.js';
import { SQL_MISTAKES, type SqlMistake } from '../../mistakes/table/sql.mistakes.js';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { MysqlLab } from '../../support/mysql/mysql-lab.js';
import { SqlStage } from './sql-stage.js';

let lab: MysqlLab;
beforeAll(async () => {
  lab = await MysqlLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

const ON_MYSQL = SQL_MISTAKES.flatMap(({ edits: { mysql }, ...mistake }) =>
  mysql ? [{ ...mistake, edits: mysql }] : [],
);

const play = async (
  library: { readonly MysqlStore: typeof MysqlStore },
  mistake: Pick<SqlMistake, 'play'>,
) => {
  await using stage = new SqlStage(
    lab,
    (options) => new library.MysqlStore({ uri: lab.server.uri, ...options }),
  );
  await mistake.play(stage);
};

describe('on MySQL, a mistake is noticed in a copy of the library', () => {
  it.each(ON_MYSQL)('$name', async (mistake) => {
    using library = breakLibrary(mistake.name, mistake.edits);
    await expect(play(await library.load('MysqlStore'), mistake)).rejects.toThrow(AssertionError);
  });
});

describe('and nothing in the library as it is, when the same is done to it', () => {
  it.each(ON_MYSQL)('$name', async (mistake) => {
    await play({ MysqlStore }, mistake);
  });
});
