import { Injectable } from '@nestjs/common';

export interface Entry {
  readonly customer: string;
  readonly number: number;
}

/** The table of entries, which all workers share. */
@Injectable()
export class EntryRepository {
  static readonly open: Entry[] = [];
  static readonly booked: Entry[] = [];
  static overlaps = 0;
  private static readonly busy = new Set<string>();
  private static hasFailed = false;

  async oldest(customer: string): Promise<Entry | undefined> {
    return EntryRepository.open.find((entry) => entry.customer === customer);
  }

  /** Books an entry. The first one of the customer "a" fails once. */
  async book(entry: Entry): Promise<void> {
    if (EntryRepository.busy.has(entry.customer)) EntryRepository.overlaps++;
    EntryRepository.busy.add(entry.customer);
    try {
      // Other workers run meanwhile.
      await new Promise(setImmediate);
      if (entry.customer === 'a' && !EntryRepository.hasFailed) {
        EntryRepository.hasFailed = true;
        throw new Error('The ledger is closed.');
      }
      EntryRepository.open.splice(EntryRepository.open.indexOf(entry), 1);
      EntryRepository.booked.push(entry);
    } finally {
      EntryRepository.busy.delete(entry.customer);
    }
  }
}
