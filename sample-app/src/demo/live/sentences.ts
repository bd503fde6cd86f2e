import type { StrategyName } from '../../flash-sale/strategies/strategy-names.js';
import type { Numbers, Tone } from './snapshot.js';

/** A sentence, before it is said. `{left}` stands for the seconds that are left. */
export interface Words {
  readonly tone: Tone;
  readonly text: string;
  readonly tokens?: string;
}

/** A grant of the lock: the tokens of a sale are long, and differ in a few digits. */
export interface Grant {
  readonly grant: number;
  readonly token: number;
}

const say = (tone: Tone, text: string, ...grants: readonly Grant[]): Words => {
  const tokens = grants.map(({ grant, token }) => `#${grant} is token ${token}`).join(', ');
  return { tone, text, tokens };
};
const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const times = (count: number, one: string, more = `${one}s`): string =>
  `${count} ${count === 1 ? one : more}`;

const OPENINGS: Readonly<Record<StrategyName, string>> = {
  none: 'No lock. Each click reads the stock, pays, and then writes what it has read, minus one. All do it at once.',
  optimistic:
    'An optimistic lock: a write counts only if no other one came since the read. Otherwise the click starts again.',
  sql: 'One conditional UPDATE takes each item. The stock is right; a crash between order and payment is not covered.',
  locked: '@Locked is on the method: one buyer at a time, in all instances together. The others wait.',
  manual: 'The same lock as @Locked, acquired by hand with LockService: one buyer at a time.',
};

const NAMES: Readonly<Record<StrategyName, string>> = {
  none: 'no lock',
  optimistic: 'an optimistic lock',
  sql: 'one UPDATE',
  locked: '@Locked',
  manual: 'LockService',
};

export const opened = (strategy: StrategyName): Words => say('plain', OPENINGS[strategy]);

export const setUp = (): Words => say('plain', 'The servers start: one for the locks, a database, a bank.');

export const waitsForCurl = (): Words =>
  say('plain', 'The shop is open and empty. Choose a strategy and open a sale: the crowd comes at once.');

export const starting = (strategy: StrategyName): Words =>
  say('plain', `The instances start; this time they sell with ${NAMES[strategy]}.`);

export const soldTooMany = ({ sold }: Numbers, items: number): Words =>
  say(
    'bad',
    `${sold} of ${items} items are sold: many clicks had read the same stock before the first one wrote.`,
  );

export const stopped = (name: string, held: Grant): Words =>
  say(
    'wait',
    `${capital(name)} was stopped while it held the lock (token #${held.grant}). ` +
      'It cannot renew its lease: the sale stands still until the lease ends, {left}.',
    held,
  );

export const killed = (name: string, waiting: number): Words => {
  const clicks =
    waiting > 0 ? ` ${capital(times(waiting, 'click'))} that waited in it go to the others.` : '';
  const text = `${capital(name)} was killed while it held the lock: the sale stands still until its lease ends, {left}.`;
  return say('bad', text + clicks);
};

export const passedOn = (from: string, to: string, wasKilled: boolean, next: Grant): Words =>
  wasKilled
    ? say(
        'good',
        `The lease of ${from} is over, and ${to} has the lock. The sale goes on; no order is lost or paid twice.`,
      )
    : say(
        'good',
        `The lease of ${from} is over: ${to} has the lock, with the higher token #${next.grant}. ${capital(from)} does not know it.`,
        next,
      );

export const wentOn = (name: string, isLate: boolean): Words =>
  isLate
    ? say(
        'wait',
        `${capital(name)} goes on, and believes that it still has the lock. It writes with its old token.`,
      )
    : say('good', `${capital(name)} goes on in time: its lease has not ended, so its write counts.`);

const salesTo = (buyers: readonly string[]): string => {
  const [buyer] = buyers;
  if (buyer === undefined) return 'a sale';
  return buyers.length > 1 ? `${buyers.length} sales` : `the sale to ${buyer.replace('-', ' ')}`;
};

export const refusedWrite = (name: string, stale: Grant, last: Grant, buyers: readonly string[]): Words =>
  say(
    'good',
    `The database refused the write of ${name}: token #${stale.grant} is older than #${last.grant}. ` +
      `Without the check it would have undone ${salesTo(buyers)}.`,
    stale,
    last,
  );

export const restarted = (name: string): Words =>
  say('plain', `${capital(name)} was started again. It waits like the others.`);

export const over = (strategy: StrategyName, numbers: Numbers, items: number): Words => {
  const { sold, oversold, chargedTwice, doubleOrders, staleWritesRefused } = numbers;
  if (oversold > 0 || chargedTwice > 0 || doubleOrders > 0) {
    const twice = times(chargedTwice, 'customer has', 'customers have');
    return say('bad', `Over: ${sold} of ${items} items were sold, and ${twice} paid twice.`);
  }
  const stale =
    staleWritesRefused > 0
      ? ` ${capital(times(staleWritesRefused, 'stale write was', 'stale writes were'))} refused.`
      : '';
  return say(
    'good',
    `Over: ${sold} of ${items} items were sold with ${NAMES[strategy]}, and no customer paid twice.${stale}`,
  );
};
