import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { json } from 'node:stream/consumers';

/** Charges of one sku: customer → number of charges. */
type Ledger = Map<string, number>;

/**
 * Creates the payment service, which charges customers and counts the charges. Like real ones, it knows idempotency
 * keys; without one it charges at every request. A charge takes `workMs`.
 *
 * `POST /charges` with `{ sku, customer }`; `GET /charges/:sku` returns `{ [customer]: times }`.
 */
export const createPaymentServer = (workMs: number) => {
  const ledgers = new Map<string, Ledger>();
  const byKey = new Map<string, Promise<void>>();

  const ledgerOf = (sku: string): Ledger => {
    const ledger = ledgers.get(sku) ?? new Map<string, number>();
    ledgers.set(sku, ledger);
    return ledger;
  };

  const charge = async (sku: string, customer: string): Promise<void> => {
    const ledger = ledgerOf(sku);
    ledger.set(customer, (ledger.get(customer) ?? 0) + 1);
    await sleep(workMs);
  };

  const post = async (request: IncomingMessage): Promise<void> => {
    const { sku, customer } = (await json(request)) as { sku: string; customer: string };
    const key = request.headers['idempotency-key'];
    if (typeof key !== 'string') return charge(sku, customer);
    // Remembered before the work begins: a repetition during the first request waits for that one.
    const first = byKey.get(key) ?? charge(sku, customer);
    byKey.set(key, first);
    return first;
  };

  return createServer((request, response) => {
    const sku = /^\/charges\/([^/]+)$/.exec(request.url ?? '')?.[1];
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

    if (request.method === 'GET' && sku) {
      answer(200, Object.fromEntries(ledgerOf(decodeURIComponent(sku))));
    } else if (request.method === 'POST' && request.url === '/charges') {
      post(request).then(
        () => answer(201, { charged: true }),
        (error: unknown) => answer(400, { message: String(error) }),
      );
    } else {
      answer(404, { message: 'There is only /charges.' });
    }
  });
};
