import { describe, expect, it } from 'vitest';
import type { Lease } from 'nest-redis-lock';
import { setup, WRITE, type Reply } from './fake-client.js';

describe('a transaction around the lock', () => {
  const around = (fenced: boolean) => {
    const { locks, client, lose, fence } = setup();
    return lose(async () => {
      await client.query('BEGIN');
      await locks.withLock('tea', async (lease) => {
        if (fenced) await fence(lease);
        await client.query(WRITE);
      });
      await locks.withLock('mint', () => 1);
      await client.query('COMMIT');
    });
  };

  it('commits a write after the release: the loss at the statement is reported', async () => {
    const report = await around(false);
    expect(report.writes).toBe(1);
    const lost = report.unfenced.filter(({ why }) => why === 'lost');
    expect(lost).toMatchObject([
      { what: WRITE, step: 1, noticed: false },
      { what: WRITE, step: 1, noticed: true },
    ]);
  });

  it('is protected by its fence, also when another lock was acquired before the COMMIT', async () => {
    expect((await around(true)).unfenced).toEqual([]);
  });
});

describe('a savepoint', () => {
  const fencedInside = (end: string) => {
    const { client, locked, fence } = setup();
    return locked(async (lease) => {
      await client.query('BEGIN');
      await client.query('SAVEPOINT a');
      await fence(lease);
      await client.query(end);
      await client.query(WRITE);
      await client.query('COMMIT');
    });
  };

  it.each(['ROLLBACK TO a', 'ROLLBACK TO SAVEPOINT "A"', 'rollback work to unknown'])(
    'takes its fence with it at %s',
    async (end) => {
      expect((await fencedInside(end)).unfenced).not.toEqual([]);
    },
  );

  it('keeps its fence when it is released', async () => {
    expect((await fencedInside('RELEASE SAVEPOINT a')).unfenced).toEqual([]);
  });

  it('takes its write with it, and no earlier one', async () => {
    const inside = ['BEGIN', 'SAVEPOINT a', WRITE, 'ROLLBACK TO SAVEPOINT a', 'COMMIT'];
    const before = ['BEGIN', 'DELETE FROM cart', 'SAVEPOINT a', WRITE, 'ROLLBACK TO a', 'COMMIT'];
    await expect(setup().reported(...before)).resolves.toEqual(['DELETE FROM cart']);
    await expect(setup().reported(...inside, 'DELETE FROM log')).resolves.toEqual(['DELETE FROM log']);
  });
});

describe('the end of a transaction', () => {
  it.each<[string, () => Promise<Reply>]>([
    ['rejects', () => Promise.reject(new Error('deferred'))],
    ['replies ROLLBACK', () => Promise.resolve({ command: 'ROLLBACK', rows: [] })],
  ])('%s: its writes are not reported, and later ones are', async (_, reply) => {
    const { client, reported } = setup();
    client.replies['COMMIT'] = reply;
    await expect(reported('BEGIN', WRITE, 'COMMIT', 'DELETE FROM log')).resolves.toEqual(['DELETE FROM log']);
  });

  it('counts from the call on: a BEGIN that is not awaited', async () => {
    const { client, locked, fence } = setup();
    const statements = async (lease: Lease, end: string): Promise<void> => {
      void client.query('BEGIN');
      await fence(lease);
      await client.query(WRITE);
      await client.query(end);
    };
    const report = await locked((lease) => statements(lease, 'COMMIT'));
    expect(report.unfenced).toEqual([]);
    const sent = client.sent.filter((sql) => /^(BEGIN|INSERT|UPDATE|COMMIT)/.test(sql));
    const order = sent.map((sql) => sql[0]).join('');
    // The next holder refuses the fence in one of the runs.
    expect(order).toMatch(/^(BIUC)+BI(BIUC)+$/);
  });

  it('is forgotten at the next run: meanwhile runs', async () => {
    const { client, locked } = setup();
    let isLeft = true;
    let times = 0;
    const work = async (): Promise<void> => {
      await client.query(WRITE);
      if (isLeft) await client.query('BEGIN');
      isLeft = false;
    };
    await locked(work, { meanwhile: () => void times++ });
    expect(times).toBeGreaterThan(0);
  });
});

describe('a statement', () => {
  it.each([
    `SELECT 1; ${WRITE}`,
    `SELECT 1; /* then */ ${WRITE}`,
    `SELECT 'a;' ; ${WRITE}`,
    `SELECT '\\'; ${WRITE}; -- '`,
    'SELECT * INTO copied FROM stock',
    `EXPLAIN ANALYZE ${WRITE}`,
    'EXPLAIN ANALYZE EXECUTE saves',
    "COMMIT PREPARED 'sale'",
    'WITH gone AS (DELETE FROM stock RETURNING *) SELECT * FROM gone',
    `# a comment of MySQL\n${WRITE}`,
    `/*! ${WRITE} */`,
    'PREPARE one AS SELECT 1',
  ])('counts as a write: %s', async (sql) => {
    await expect(setup().reported(sql)).resolves.toHaveLength(1);
  });

  it.each([
    'SELECT 1;',
    'SELECT \'a; UPDATE\', "into" FROM stock -- ; UPDATE',
    'SELECT * FROM stock FOR NO KEY UPDATE',
    "WITH some AS (SELECT 'delete') SELECT * FROM some FOR UPDATE",
    '# a comment of MySQL\nSELECT 1',
  ])('counts as a read: %s', async (sql) => {
    await expect(setup().reported(sql, WRITE)).resolves.toEqual([WRITE]);
  });

  it('ends a transaction if its text holds several, with the end among them', async () => {
    const { reported } = setup();
    const text = `BEGIN; ${WRITE}; COMMIT`;
    await expect(reported('BEGIN', 'DELETE FROM cart', text, 'ROLLBACK')).resolves.toEqual([
      'DELETE FROM cart',
      text,
    ]);
  });

  it('is one entry for its line, although its text varies', async () => {
    const { client, locked } = setup();
    let id = 0;
    const report = await locked(async () => {
      await client.query('SELECT 1');
      await client.query(`INSERT INTO log VALUES (${id++})`);
    });
    expect(report.unfenced.length).toBeGreaterThan(2);
    expect(String(report)).toMatch(/^1 write went on/);
  });
});

describe('what is watched', () => {
  it.each([async () => false, () => 1])(
    'is refused with an except that returns no boolean: %s',
    async (except) => {
      const { client, locked } = setup();
      const call = locked(() => client.query(WRITE), { except: except as never });
      await expect(call).rejects.toThrow('The result of except must be true or false');
    },
  );

  it('is watched once, although it is named twice', async () => {
    const { client, locked } = setup();
    const writes = [[client, 'query', 'query'] as const];
    const report = await locked(() => client.query(WRITE), { databases: [], writes });
    expect(report).toMatchObject({ steps: 1, writes: 1 });
    expect(Object.keys(client)).not.toContain('query');
  });

  it('is refused by name if it is frozen', async () => {
    const { locked } = setup();
    const frozen = Object.freeze({ charge: async () => 1 });
    const call = locked(() => frozen.charge(), { writes: [[frozen, 'charge']] });
    await expect(call).rejects.toThrow('cannot watch Object.charge: the object is frozen');
  });

  it('is refused by name while another run watches it, and is put back', async () => {
    const { client, locked } = setup();
    const first = locked(() => client.query(WRITE));
    const second = locked(() => client.query(WRITE));
    await expect(second).rejects.toThrow('already watches FakeClient.query in another run');
    await expect(first).resolves.toMatchObject({ writes: 1 });
    expect(Object.hasOwn(client, 'query')).toBe(false);
  });
});
