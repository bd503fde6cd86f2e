import type { StrategyName } from '../../flash-sale/strategies/strategy-names.js';
import type { Numbers, Tone } from './snapshot.js';

/** A sentence, before it is said. `{left}` stands for the seconds that are left. */
export interface Words {
  readonly tone: Tone;
  readonly text: string;
}

const say = (tone: Tone, text: string): Words => ({ tone, text });
const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const times = (count: number, one: string, more = `${one}s`): string =>
  `${count} ${count === 1 ? one : more}`;

/** Returns the digits in which tokens of one sale differ: Redis makes them of its clock. */
const short = (token: number): string => `…${String(token).slice(-6)}`;

const OPENINGS: Readonly<Record<StrategyName, string>> = {
  none: 'No lock. Each click reads the stock, pays, and then writes what it has read, minus one. All do it at once.',
  optimistic:
    'An optimistic lock: a write counts only if no other one came since the read. Otherwise the click starts again.',
  sql: 'One conditional UPDATE takes each item. The stock is right; a crash between order and payment is not covered.',
  locked:
    '@Locked is on the method: one buyer at a time, in all instances together. The others wait in line.',
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

export const stopped = (name: string, token: number): Words =>
  say(
    'wait',
    `${capital(name)} was stopped while it held the lock (token ${short(token)}). ` +
      'It cannot renew its lease: the sale stands still until the lease ends, {left}.',
  );

export const killed = (name: string): Words =>
  say(
    'bad',
    `${capital(name)} was killed while it held the lock: the sale stands still until its lease ends, {left}.`,
  );

export const passedOn = (from: string, to: string, wasKilled: boolean, token: number): Words =>
  wasKilled
    ? say(
        'good',
        `The lease of ${from} is over, and ${to} has the lock. The sale goes on; no order is lost or paid twice.`,
      )
    : say(
        'good',
        `The lease of ${from} is over: ${to} has the lock, with the higher token ${short(token)}. ${capital(from)} does not know it.`,
      );

export const wentOn = (name: string, isLate: boolean): Words =>
  isLate
    ? say(
        'wait',
        `${capital(name)} goes on, and believes that it still has the lock. It writes with its old token.`,
      )
    : say('good', `${capital(name)} goes on in time: its lease has not ended, so its write counts.`);

export const refusedWrite = (name: string, token: number): Words =>
  say(
    'good',
    `The database refused the write of ${name}: token ${short(token)} is too old. Without the check it would have undone a sale.`,
  );

export const restarted = (name: string): Words =>
  say('plain', `${capital(name)} was started again. It waits in line like the others.`);

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
