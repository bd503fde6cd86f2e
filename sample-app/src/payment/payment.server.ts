import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { json } from 'node:stream/consumers';

/** What a bank takes to answer, in ms. */
const WORK_MS = 3;

/** The charges of one sku: customer → how often charged. */
type Ledger = Map<string, number>;

/**
 * The payment service: charges customers and remembers how often. Like real ones, it knows idempotency keys, and
 * without one it charges as often as it is asked to.
 *
 * `POST /charges` with `{ sku, customer }`; `GET /charges/:sku` answers `{ [customer]: times }`.
 */
export const createPaymentServer = () => {
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
    await sleep(WORK_MS);
  };

  const post = async (request: IncomingMessage): Promise<void> => {
    const { sku, customer } = (await json(request)) as { sku: string; customer: string };
    const key = request.headers['idempotency-key'];
    if (typeof key !== 'string') return charge(sku, customer);
    // Remembered before the work begins: a repetition that comes while the first is at work waits for the first.
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
