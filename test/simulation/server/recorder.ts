import type { HistoryEvent } from '../../checker/history.js';
import { HoldWatch, type ForcingScripts } from '../../faults/topology/hold-watch.js';
import { readMonitorLine, type MonitoredCommand } from '../../faults/topology/redis-monitor.js';
import type { Agenda } from '../engine/agenda.js';
import type { Chronicle } from '../engine/chronicle.js';
import { Held } from './held.js';

/** How long an entry of a wait queue lives without a refresh, in ms. */
const ENTRY_LIVES_MS = 5_000;

/** The prefix of all keys that processes lock. */
export const KEY_PREFIX = 'lock:';

/** Returns the name of a key as plans and histories have it. */
export const plainKey = (finalKey: string): string =>
  finalKey.startsWith(KEY_PREFIX) ? finalKey.slice(KEY_PREFIX.length) : finalKey;

const isOfHold = (event: HistoryEvent): event is Extract<HistoryEvent, { type: 'hold' }> =>
  event.type === 'hold';

/** Everything that the watch was told, so that another one can be brought to the same state. */
export type Told = readonly ((watch: HoldWatch) => void)[];

/**
 * Writes into the history which holds the server has, from the commands that it executes: the watch of the fault
 * laboratory reads them. Everything is kept, so that the server can be set back to what it was at an earlier time.
 */
export class Recorder {
  private watch: HoldWatch;
  private readonly held = new Held();
  private told: ((watch: HoldWatch) => void)[] = [];

  constructor(
    private readonly agenda: Agenda,
    private readonly chronicle: Chronicle,
    private readonly forcing: ForcingScripts,
  ) {
    this.watch = this.newWatch((event) => this.write(event));
  }

  /** The holds of this moment. */
  get owners(): readonly (readonly [key: string, owner: string])[] {
    this.settle();
    return this.held.all.map(({ key, owner }) => [key, owner] as const);
  }

  /** Takes in a line of MONITOR. */
  line(text: string): void {
    const command: MonitoredCommand | undefined = readMonitorLine(text);
    if (!command) return;
    const { now } = this.agenda;
    this.tell((watch) => watch.take(command, now));
  }

  /** Writes down which holds have expired by now. */
  settle(): void {
    this.watch.settle(this.agenda.now);
  }

  /** The key was deleted. */
  deleted(finalKey: string): void {
    const { now } = this.agenda;
    this.settle();
    const key = plainKey(finalKey);
    const until = this.held.latestEnd(now, key);
    this.tell((watch) => watch.deleted(finalKey, now));
    this.chronicle.add({ type: 'unprotected', at: now, key, until, why: `"${key}" was deleted` });
  }

  /** The server's clock was set. */
  clockJumped(ms: number): void {
    const { now } = this.agenda;
    this.tell((watch) => watch.clockJumped(ms, now));
  }

  /** Until the leases of this moment have expired, they protect nothing. */
  unprotect(why: string): void {
    this.settle();
    const { now: at } = this.agenda;
    this.chronicle.add({ type: 'unprotected', at, until: this.held.latestEnd(at), why });
  }

  /** What has happened until now, for `goBackTo`. */
  get past(): Told {
    return [...this.told];
  }

  /** The server has what it had then, and nothing of what came later. */
  goBackTo(past: Told): void {
    const { now } = this.agenda;
    this.watch.allLost(now);
    const events: HistoryEvent[] = [];
    const held = new Held();
    let write = (event: HistoryEvent): void => {
      events.push(event);
      held.take(event);
    };
    this.watch = this.newWatch((event) => write(event));
    for (const tell of past) tell(this.watch);
    this.watch.settle(now);
    write = (event) => this.write(event);
    this.told = [...past];
    this.chronicle.add({ type: 'old lines', at: now, until: now + ENTRY_LIVES_MS });
    for (const { key, owner, until } of held.all) {
      const first = events.filter(isOfHold).findLast((event) => event.key === key && event.owner === owner)!;
      // Its tokens were given before.
      this.write({ ...first, at: now, until, token: undefined, lastToken: undefined });
    }
  }

  private tell(tell: (watch: HoldWatch) => void): void {
    this.told.push(tell);
    tell(this.watch);
  }

  private newWatch(write: (event: HistoryEvent) => void): HoldWatch {
    return new HoldWatch(
      KEY_PREFIX,
      (event) =>
        write('key' in event && event.key !== undefined ? { ...event, key: plainKey(event.key) } : event),
      this.forcing,
    );
  }

  private write(event: HistoryEvent): void {
    this.held.take(event);
    this.chronicle.add(event);
  }
}
