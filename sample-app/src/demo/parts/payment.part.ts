import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createPaymentServer } from '../../payment/payment.server.js';
import { runPart } from '../part-process.js';

/** Runs the bank. The first argument is how long it takes for a charge, in ms. */
await runPart(async () => {
  const [workMs] = process.argv.slice(2);
  const server = createPaymentServer(Number(workMs)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
