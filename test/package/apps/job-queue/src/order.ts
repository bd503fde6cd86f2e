// Two workers, and jobs of three customers whose order matters. One worker stops on the way, as at a deploy.
import { EntryRepository } from './entry.repository.js';
import { LedgerProcessor, LedgerService } from './ledger.processor.js';
import { start, until } from './setup.js';

const CUSTOMERS = ['a', 'b', 'c'];
const EACH = 20;
const ALL = CUSTOMERS.length * EACH;

interface Done {
  readonly customer: string;
  readonly number: number;
}

/** Counts what was done after a later one of its customer. */
const outOfOrder = (done: readonly Done[]): number => {
  const last = new Map<string, number>();
  return done.filter(({ customer, number }) => {
    const latest = last.get(customer) ?? -1;
    last.set(customer, Math.max(latest, number));
    return number < latest;
  }).length;
};

const numbers = Array.from({ length: EACH }, (_, number) => number);
const jobs = numbers.flatMap((number) => CUSTOMERS.map((customer) => ({ customer, number })));

const startLedger = () => start('ledger', EntryRepository, LedgerService, LedgerProcessor);

const ledger = async () => {
  const [first, second] = [await startLedger(), await startLedger()];
  EntryRepository.open.push(...jobs);
  await second.queue.addBulk(
    jobs.map((data) => ({ name: 'book', data, opts: { attempts: 3, backoff: 100 } })),
  );
  const began = await until(() => EntryRepository.booked.length >= EACH);
  await first.app.close();
  const third = await startLedger();
  const done = await until(async () => (await third.queue.getCompletedCount()) === ALL);
  const failed = await third.queue.getFailedCount();
  await Promise.all([second.app.close(), third.app.close()]);
  const { booked, overlaps, open } = EntryRepository;
  return { began, done, failed, overlaps, open: open.length, outOfOrder: outOfOrder(booked) };
};

console.log(JSON.stringify(await ledger()));
