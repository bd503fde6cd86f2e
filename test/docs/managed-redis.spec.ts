import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { selfSignedCertificate } from '../support/certificate.js';
import { RecordingLogger } from '../support/nest/recording-logger.js';
import { Lab } from '../support/redis/lab.js';
import { RedisClusterServers } from '../support/servers/redis-cluster.js';
import { runPage } from './recipes.js';

const PAGE = 'docs/recipes/managed-redis.md';

/** What Upstash's list of commands lacks of the commands that the library sends. */
const NOT_LISTED = ['-info', '-client|kill', '-wait', '-cluster'];

describe('ElastiCache', () => {
  it('a cluster of three masters with TLS, a user and host names gives locks on each of them', async () => {
    const certificate = selfSignedCertificate();
    await using cluster = await RedisClusterServers.start({
      replicas: false,
      tls: certificate,
      users: ['locks on >secret ~* &* +@all'],
      config: [
        ...['tls-cluster yes', 'cluster-announce-hostname localhost'],
        ...['cluster-preferred-endpoint-type hostname'],
      ],
    });
    const [endpoint] = cluster.servers;
    const open = async (trusted: string) => {
      // The page says 'localhost', and so does the certificate.
      const address = { host: 'localhost', port: endpoint!.port };
      const { OnElastiCacheModule } = await runPage(PAGE, address, (source) =>
        source.replace('tls: {}', `tls: ${trusted}`),
      );
      return Test.createTestingModule({ imports: [OnElastiCacheModule as Type] })
        .setLogger(new RecordingLogger())
        .compile();
    };
    const module = await open(JSON.stringify({ ca: certificate.cert }));
    await module.init();
    try {
      const locks = module.get(LockService);
      const keys = Array.from({ length: 12 }, (_, i) => `order:${i}`);
      const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
      const holding = await Promise.all(
        cluster.servers.map(async (server) => ((await server.cli('KEYS', 'lock:*')) as string[]).length),
      );
      expect(holding.every((count) => count > 0)).toBe(true);
      const waiting = locks.acquire(keys[0]!, { waitMs: 20_000 });
      await until(() => locks.usage.leases === keys.length + 1);
      await leases[0]!.release();
      await (await within(10_000, waiting)).release();
      await Promise.all(leases.slice(1).map((lease) => lease.release()));
    } finally {
      await module.close();
    }
    const untrusted = await open('{}');
    await untrusted.init();
    await expect(untrusted.get(LockService).acquire('order:1')).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
    });
    await untrusted.close();
  });
});

describe('Upstash', () => {
  it('a Redis without the commands that its list lacks gives all kinds of lock', async () => {
    await using lab = await Lab.start({
      users: [`upstash on >secret ~* &* +@all ${NOT_LISTED.join(' ')}`],
    });
    const user = { ...lab.server.clientOptions(), username: 'upstash', password: 'secret' };
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    for (const mode of ['exclusive', 'fair', 'write'] as const) {
      const lease = await one.locks.acquire(mode, { mode });
      const waiting = two.locks.acquire(mode, { mode, waitMs: 20_000 });
      await until(() => two.locks.usage.leases === 1);
      await lease.extend(60_000);
      expect(await two.locks.isLocked(mode)).toBe(true);
      await lease.release();
      await (await within(10_000, waiting)).release();
    }
    const permit = await one.locks.permits('crm', { permits: 1 }).acquire();
    expect(await two.locks.permits('crm', { permits: 1 }).tryAcquire()).toBeNull();
    await permit.release();
    await one.locks.acquire('forced');
    expect(await two.locks.forceUnlock('forced')).toBe(true);
  });
});
