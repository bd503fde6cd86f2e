import type { Lane, Snapshot } from '../demo/live/snapshot.js';
import { byId, html, Keyed, set, write } from './dom.js';
import { capital, seconds, times } from './words.js';

const TOKEN = 'Fencing token: a number that grows with each grant.';
const NO_LOCK = 'This strategy takes no lock: each instance sells to all of its buyers at once.';

/** The holder of the lock, the rest of its lease, and the buyers that wait. */
export class LockPanel {
  private readonly panel = byId('lock');
  private readonly holder = html('p', { class: 'holder' });
  private readonly details = html('div');
  private readonly level = html('span');
  private readonly facts = html('dl');
  private readonly buyer = html('dd');
  private readonly token = html('dd');
  private readonly left = html('dd');
  private readonly line = html('ul', { class: 'line' });
  private readonly waiting = new Keyed<Lane, HTMLLIElement>(
    this.line,
    ({ name }) => name,
    ({ name }) => html('li', {}, html('span', {}, capital(name)), html('span')),
    (item, lane) => write(item.lastElementChild!, waitersOf(lane)),
  );

  constructor() {
    const meter = html('div', { class: 'meter', 'aria-hidden': 'true' }, this.level);
    const rows = [
      ['Buyer', this.buyer],
      ['Fencing token', this.token],
      ['Lease ends in', this.left],
    ] as const;
    for (const [term, value] of rows) this.facts.append(html('dt', {}, term), value);
    this.details.append(meter, this.facts, html('p', { class: 'note' }, TOKEN), this.line);
    this.panel.append(this.holder, this.details);
  }

  show({ lock, lanes, leaseMs, usesLock }: Snapshot, now: number): void {
    const lane = lock && lanes[lock.lane];
    const leftMs = lock ? Math.max(0, lock.endsAt - now) : 0;
    set(this.panel, {
      'data-holder': lane?.name ?? '',
      'data-token': lock?.token ?? '',
      'data-grant': lock?.grant ?? '',
      'data-state': lane?.state ?? 'free',
      class: lock ? `lane-${lock.lane + 1}` : '',
    });
    set(this.holder, { class: lane ? 'holder' : 'holder is-free' });
    write(this.holder, lane ? capital(lane.name) : usesLock ? 'free' : NO_LOCK);
    this.details.hidden = !usesLock;
    this.level.style.width = `${Math.min(100, (100 * leftMs) / leaseMs)}%`;
    write(this.buyer, lock?.buyer || '–');
    write(this.token, lock ? `#${lock.grant}` : '–');
    set(this.token, { title: String(lock?.token ?? '') });
    write(this.left, lock ? seconds(leftMs) : '–');
    this.waiting.show(lanes);
  }
}

const waitersOf = ({ waiting, next, state }: Lane): string => {
  if (state === 'starting') return 'starts';
  if (state === 'killed') return 'is dead';
  if (waiting === 0) return 'none wait';
  const more = waiting > next.length ? ' …' : '';
  return `${times(waiting, 'waits', 'wait')}: ${next.map((buyer) => buyer.replace('buyer-', '')).join(', ')}${more}`;
};
