import type { Lane, LaneState, Snapshot } from '../demo/live/snapshot.js';
import { byId, html, Keyed, set, write } from './dom.js';
import { Drawing } from './drawing.js';
import { legend } from './legend.js';
import { capital, times } from './words.js';

const STATES: Readonly<Record<LaneState, string>> = {
  starting: 'starts …',
  idle: 'idle',
  waits: 'waits',
  holds: 'has the lock',
  stopped: 'stopped',
  killed: 'killed',
};

interface Row extends Lane {
  readonly index: number;
  /** Whether it has the lock. */
  readonly has: boolean;
}

const stateOf = ({ state, working, has }: Row, usesLock: boolean): string => {
  if (!usesLock && working > 0) return `${times(working, 'buyer')} inside at once`;
  if (!usesLock && state === 'waits') return STATES.idle;
  return has && state !== 'holds' ? `${STATES[state]}, has it` : STATES[state];
};

/** A lane for each instance, with what it did in the last seconds. */
export class Lanes {
  private readonly drawing = new Drawing(byId<SVGSVGElement>('drawing'));
  private legendFor: boolean | undefined;
  private usesLock = true;
  private readonly list = new Keyed<Row, HTMLLIElement>(
    byId('lanes'),
    ({ index }) => index,
    ({ index, name }) =>
      html(
        'li',
        { class: `lane-${index + 1}`, 'data-lane': String(index + 1) },
        html(
          'div',
          { class: 'head' },
          html('b', {}, capital(name)),
          html('span', { class: 'state' }),
          html('span', { class: 'waits' }),
        ),
        html('div', { class: 'track' }),
      ),
    (item, lane) => {
      set(item, {
        'data-state': lane.state,
        'data-holds': String(lane.has),
        'data-refused': lane.crosses.length,
      });
      const [, state, waits] = item.firstElementChild!.children;
      write(state!, stateOf(lane, this.usesLock));
      write(waits!, lane.waiting > 0 ? times(lane.waiting, 'waits', 'wait') : '');
    },
  );

  /** Returns whether the drawing moves. */
  show(snapshot: Snapshot, now: number): boolean {
    this.usesLock = snapshot.usesLock;
    const { lanes, lock } = snapshot;
    this.list.show(lanes.map((lane, index) => ({ ...lane, index, has: lock?.lane === index })));
    if (this.legendFor !== snapshot.usesLock) this.explain(snapshot.usesLock);
    return this.drawing.show(snapshot, now);
  }

  private explain(usesLock: boolean): void {
    this.legendFor = usesLock;
    byId('legend').replaceChildren(...legend(usesLock));
  }
}
