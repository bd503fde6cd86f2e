import type { Session } from '../network/session.js';
import type { Command } from '../server/command.js';
import type { RespValue } from '../server/resp.js';

/** More attempts than it ever takes. */
const MAX_TRIES = 1_000;

/**
 * Keeps PUBSUB NUMSUB right, on which scripts depend. In the 32-bit build of Valkey 9.1, NUMSUB is in the millions while
 * the table of a channel's subscribers grows (13, 25, 49, 97 … subscribers). The table goes on growing only when another
 * client subscribes or unsubscribes, so one client does that until the count is right.
 */
export class SubscriberCounts {
  private readonly subscribers = new Map<string, Set<Session>>();
  /** Commands that this took. */
  commands = 0;

  /** @param ask executes a command on a connection that nothing else uses, and returns the first reply */
  constructor(private readonly ask: (command: Command) => RespValue) {}

  /** Takes in a command that was executed. */
  executed(session: Session, [name, ...channels]: Command): void {
    const text = String(name);
    if (!/^s?(un)?subscribe$/.test(text)) return;
    for (const channel of channels.map(String)) {
      const all = this.subscribers.get(channel) ?? new Set();
      this.subscribers.set(channel, all);
      if (text.includes('un')) all.delete(session);
      else all.add(session);
      this.settle(text.startsWith('s') && !text.startsWith('sub') ? 's' : '', channel, all.size);
    }
  }

  private settle(sharded: '' | 's', channel: string, expected: number): void {
    const count = sharded ? 'shardnumsub' : 'numsub';
    for (let i = 0; i < MAX_TRIES; i++) {
      this.commands += 1;
      const [, found] = this.ask(['pubsub', count, channel]) as readonly RespValue[];
      if (found === expected) return;
      this.commands += 2;
      this.ask([`${sharded}subscribe`, channel]);
      this.ask([`${sharded}unsubscribe`, channel]);
    }
    throw new Error(`${channel} has ${expected} subscribers, which the server does not count`);
  }
}
