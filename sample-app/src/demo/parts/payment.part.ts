import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createPaymentServer } from '../../payment/payment.server.js';
import { runPart } from '../part-process.js';

await runPart(async () => {
  const server = createPaymentServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
