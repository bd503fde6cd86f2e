import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  batchOf,
  keysAndArgs,
  type BatchPart,
  type PartRun,
} from '../../../../lib/stores/redis/connection/script-batch.js';
import { Script } from '../../../../lib/stores/redis/connection/script.js';
import { RedisServer } from '../../../support/servers/redis-server.js';

/** A script that replies what it was given. */
const ECHO = `return table.concat(KEYS, ',') .. ' ' .. table.concat(ARGV, ',')`;

const partOf = (letter: string, keys: number, args: number, shared: number): BatchPart => ({
  letter,
  script: new Script(ECHO),
  keys,
  args,
  shared,
});

const TWO = partOf('a', 2, 1, 2);
const OTHER = partOf('B', 1, 2, 1);
const ALONE = partOf('c', 1, 1, 0);

const run = (part: BatchPart, keys: readonly string[], args: PartRun['args']): PartRun => ({
  part,
  keys,
  args,
});

describe('a batch of scripts', () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.clientOptions());
  });

  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });

  const echoed = (runs: readonly PartRun[]): Promise<unknown> => {
    const [keys, args] = keysAndArgs(runs);
    return client.eval(batchOf([TWO, OTHER, ALONE]).source, keys.length, ...keys, ...args);
  };

  it.each<[string, readonly PartRun[]]>([
    [
      'one owner after the other',
      [run(TWO, ['k', 'l'], ['p:1', 5, 'x']), run(TWO, ['m', 'n'], ['p:2', 5, 'x'])],
    ],
    ['another process between them', [1, 2, 1].map((p) => run(TWO, ['k', 'l'], [`p${p}:7`, 5, 'x']))],
    [
      'a process whose name begins another',
      ['p:1', 'p:q:1', 'p:2'].map((owner) => run(TWO, ['k', 'l'], [owner, 5, 'x'])),
    ],
    ['another argument each time', [1, 2, 2, 1].map((lease) => run(TWO, ['k', 'l'], ['p:1', lease, 'x']))],
    ['an empty one in common', ['', 'y', ''].map((entry) => run(TWO, ['k', 'l'], ['p:1', 5, entry]))],
    ['owners without a process', ['a', 'b', ''].map((owner) => run(ALONE, ['k'], [owner]))],
    [
      'several scripts in turn',
      [
        run(OTHER, ['k'], ['p:1', 'own', 'PUBLISH']),
        run(TWO, ['k', 'l'], ['p:2', 5, 'x']),
        run(OTHER, ['m'], ['p:3', 'other', 'PUBLISH']),
        run(ALONE, ['n'], ['q:4']),
        run(TWO, ['k', 'l'], ['p:5', 5, 'x']),
      ],
    ],
  ])('gives each run its own keys and arguments: %s', async (_title, runs) => {
    expect(await echoed(runs)).toEqual(runs.map(({ keys, args }) => `${keys.join(',')} ${args.join(',')}`));
  });

  it('sends what runs have in common once', () => {
    const runs = [1, 2, 3].map((n) => run(TWO, ['k', 'l'], [`process:${n}`, 30_000, 'PUBLISH']));
    expect(keysAndArgs(runs)[1]).toEqual(['=aaa', 'process:', 30_000, 'PUBLISH', '1', '2', '3']);
  });
});
