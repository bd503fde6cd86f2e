import type { Bar, Cross, Snapshot, Span } from '../demo/live/snapshot.js';
import { Keyed, set, svg, write } from './dom.js';
import { definitions, newBar, newCross, newHandOver, newSpan } from './shapes.js';
import { TimeScale } from './time-scale.js';

/** Sizes of a lane, as in page.css. */
const LANE_HEIGHT = 84;
const TRACK_TOP = 28;
const TRACK_HEIGHT = 40;
/** Rows for buyers that are inside at once. */
const THIN_ROWS = 8;
/** Widths of a digit, and of the space beside it. */
const DIGIT_WIDTH = 8.4;
const SPACE = 4;

const topOf = (lane: number): number => lane * LANE_HEIGHT + TRACK_TOP;

interface InLane {
  readonly lane: number;
}
interface BarInLane extends Bar, InLane {
  readonly row: number | undefined;
  /** When something covers the lane again: the next block, or a time in which the instance was stopped or dead. */
  readonly free: number;
}
interface SpanInLane extends Span, InLane {
  /** When its lease ended, while it was stopped. */
  readonly leaseEnd: number | undefined;
}

/** The lock went from the end of one block to the start of another one. */
interface HandOver {
  readonly id: number;
  readonly from: BarInLane;
  readonly to: BarInLane;
}

const handOversOf = (bars: readonly BarInLane[]): HandOver[] => {
  const holds = bars.filter(({ token }) => token !== undefined).sort((a, b) => a.from - b.from);
  return holds
    .slice(1)
    .map((to, index) => ({ id: to.id, from: holds[index]!, to }))
    .filter(({ from, to }) => from.lane !== to.lane);
};

const freeUntil = (bar: Bar, others: readonly (Bar | Span)[]): number =>
  Math.min(Infinity, ...others.filter(({ to = Infinity }) => to > bar.from).map(({ from }) => from));

const leaseEndIn = ({ kind, from, to = Infinity }: Span, bars: readonly Bar[]): number | undefined =>
  kind === 'stopped'
    ? bars.find((bar) => bar.from <= from && bar.to !== undefined && bar.to > from && bar.to < to)?.to
    : undefined;

/** Gives each bar a row in which no earlier one of its lane still lasts. */
const rowsOf = (bars: readonly Bar[]): number[] => {
  const ends: number[] = [];
  return bars.map(({ from, to = Infinity }) => {
    const free = ends.findIndex((end) => end <= from);
    const row = free < 0 ? ends.length : free;
    ends[row] = to;
    return row;
  });
};

/** Draws what the instances did on one scale of time, which ends a lease behind the present. */
export class Drawing {
  private readonly scale = new TimeScale();
  private height = 0;
  private readonly moving = svg('g');
  private readonly lease = svg('rect', { class: 'lease', height: TRACK_HEIGHT - 8, rx: 3 });
  private readonly now = svg('line', { class: 'now', y1: 0 });
  private readonly nowText = svg('text', { class: 'now-text', 'text-anchor': 'middle' }, 'now');
  private readonly bars: Keyed<BarInLane, SVGGElement>;
  private readonly spans: Keyed<SpanInLane, SVGGElement>;
  private readonly handOvers: Keyed<HandOver, SVGPathElement>;
  private readonly crosses: Keyed<Cross & InLane, SVGGElement>;

  constructor(private readonly root: SVGSVGElement) {
    const layer = (): SVGGElement => this.moving.appendChild(svg('g'));
    this.root.append(definitions(), this.lease, this.moving, this.now, this.nowText);
    const idOf = ({ id }: { readonly id: number }): number => id;
    this.bars = new Keyed<BarInLane, SVGGElement>(layer(), idOf, newBar, (group, bar) =>
      this.placeBar(group, bar),
    );
    this.spans = new Keyed<SpanInLane, SVGGElement>(layer(), idOf, newSpan, (group, span) =>
      this.placeSpan(group, span),
    );
    this.handOvers = new Keyed<HandOver, SVGPathElement>(layer(), idOf, newHandOver, (arrow, one) =>
      this.placeHandOver(arrow, one),
    );
    this.crosses = new Keyed<Cross & InLane, SVGGElement>(layer(), idOf, newCross, (group, { at, lane }) =>
      this.moveTo(group, at, lane),
    );
    new ResizeObserver(([entry]) => (this.width = entry?.contentRect.width ?? 0)).observe(this.root);
  }

  private set width(width: number) {
    this.scale.width = width;
  }

  /** Returns whether it moves on without a change. */
  show(snapshot: Snapshot, now: number): boolean {
    const { lanes, usesLock, leaseMs } = snapshot;
    const at = Math.min(now, snapshot.frozenAt ?? Infinity);
    this.height = lanes.length * LANE_HEIGHT;
    this.scale.show(at, leaseMs);
    set(this.moving, { transform: `translate(${this.scale.shift.toFixed(1)} 0)` });
    const barsInLanes = lanes.flatMap(({ bars, spans }, lane) => {
      const rows = usesLock ? [] : rowsOf(bars);
      return bars.map((bar, index) => ({
        ...bar,
        lane,
        row: rows[index],
        free: freeUntil(bar, [...bars.slice(index + 1, index + 2), ...spans]),
      }));
    });
    this.bars.show(barsInLanes);
    this.spans.show(
      lanes.flatMap(({ bars, spans }, lane) =>
        spans.map((span) => ({ ...span, lane, leaseEnd: leaseEndIn(span, bars) })),
      ),
    );
    this.crosses.show(lanes.flatMap(({ crosses }, lane) => crosses.map((cross) => ({ ...cross, lane }))));
    this.handOvers.show(handOversOf(barsInLanes));
    this.showLease(snapshot, at);
    const x = this.scale.present;
    set(this.now, { x1: x, x2: x, y2: this.height - 14 });
    set(this.nowText, { x, y: this.height - 2 });
    return snapshot.frozenAt === undefined && lanes.length > 0;
  }

  /** What is left of the lease lies in the future, right of the present. */
  private showLease({ lock, lanes }: Snapshot, now: number): void {
    const state = lock && lanes[lock.lane]?.state;
    set(this.lease, {
      class: `lease lane-${(lock?.lane ?? 0) + 1} ${state === 'stopped' || state === 'killed' ? state : ''}`,
      x: this.scale.present,
      y: topOf(lock?.lane ?? 0) + 4,
      'data-tail': lock ? lock.lane + 1 : '',
      width: lock ? Math.max(0, (lock.endsAt - now) * this.scale.perMs) : 0,
    });
  }

  private placeBar(group: SVGGElement, bar: BarInLane): void {
    const { from, to, lane, row, token, buyer, buyers, sold, free } = bar;
    const [rect, name, tick] = [...group.children] as [Element, Element, Element];
    const x = this.scale.at(from);
    const end = to ?? this.scale.now;
    const width = Math.max(2, this.scale.at(end) - x - 1);
    const isThin = row !== undefined;
    const thin = (TRACK_HEIGHT - 4) / THIN_ROWS;
    const y = topOf(lane) + (isThin ? 2 + (row % THIN_ROWS) * thin : 4);
    const open = token !== undefined && to === undefined;
    set(group, {
      class: `lane-${lane + 1}`,
      'data-bar': token ?? '',
      'data-sold': sold,
      'data-open': open ? lane + 1 : '',
    });
    set(rect, { class: isThin ? 'thin' : 'bar', x, y, width, height: isThin ? thin - 1 : TRACK_HEIGHT - 8 });
    if (isThin) return;
    write(name, buyers > 1 ? `×${buyers}` : buyer.replace('buyer-', ''));
    write(tick, sold > 1 ? `✓${sold}` : sold > 0 ? '✓' : '');
    const needed = DIGIT_WIDTH * Math.max(name.textContent.length, tick.textContent.length) + SPACE;
    const isInside = (Math.min(end, free) - from) * this.scale.perMs >= needed;
    const isBeside = to !== undefined && (Math.min(free, this.scale.now) - to) * this.scale.perMs >= needed;
    for (const [index, text] of [name, tick].entries())
      set(text, {
        x: (isInside ? x : x + width) + SPACE / 2,
        y: y + 13 + 14 * index,
        class: isInside ? 'inside' : 'beside',
        visibility: isInside || isBeside ? 'visible' : 'hidden',
      });
  }

  private placeSpan(group: SVGGElement, { from, to, lane, leaseEnd }: SpanInLane): void {
    const x = this.scale.at(from);
    const width = Math.max(2, this.scale.at(to ?? this.scale.now) - x);
    const [y, height] = [topOf(lane) + 1, TRACK_HEIGHT - 2];
    const [paper, hatching, end] = [...group.children] as [Element, Element, Element];
    for (const rect of [paper, hatching]) set(rect, { x, y, width, height });
    const endsAt = this.scale.at(leaseEnd ?? from);
    set(end, { d: leaseEnd === undefined ? '' : `M${endsAt.toFixed(1)} ${y}v${height}` });
    set(group, { class: `lane-${lane + 1}` });
  }

  private placeHandOver(arrow: SVGPathElement, { from, to }: HandOver): void {
    const down = to.lane > from.lane;
    const [far, near] = [TRACK_HEIGHT - 4, 4];
    const start = [this.scale.at(from.to ?? to.from) - 2, topOf(from.lane) + (down ? far : near)];
    const end = [this.scale.at(to.from) + 1, topOf(to.lane) + (down ? near : far)];
    const d = `M${start.map((n) => n.toFixed(1)).join(' ')}L${end.map((n) => n.toFixed(1)).join(' ')}`;
    set(arrow, { d, 'data-from': from.token!, 'data-to': to.token! });
  }

  private moveTo(group: SVGGElement, at: number, lane: number): void {
    set(group, {
      transform: `translate(${this.scale.at(at).toFixed(1)} ${topOf(lane) + TRACK_HEIGHT + 2})`,
    });
  }
}
