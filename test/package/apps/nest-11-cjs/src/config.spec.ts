import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { PriceImport, PriceModule } from './price-module.js';

it('takes its lease from ConfigService', async () => {
  Object.assign(process.env, { REDIS_URL: 'redis://127.0.0.1:1', WAIT_MS: '30', IMPORT_LEASE_MS: '60000' });
  const app = await Test.createTestingModule({ imports: [PriceModule] }).compile();
  expect(app.get(PriceImport)).toHaveProperty('times', { leaseMs: 60_000, waitMs: 1_000 });
  await app.close();
});
