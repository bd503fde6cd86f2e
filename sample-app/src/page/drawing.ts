import type { Bar, Cross, Snapshot, Span } from '../demo/live/snapshot.js';
import { Keyed, set, svg } from './dom.js';
import { TimeScale } from './time-scale.js';

/** Sizes of a lane, as in page.css. */
const LANE_HEIGHT = 84;
const TRACK_TOP = 28;
const TRACK_HEIGHT = 40;
/** Rows for buyers that are inside at once. */
const THIN_ROWS = 8;
/** Width from which a bar has room for its buyer. */
const TEXT_WIDTH = 22;

const topOf = (lane: number): number => lane * LANE_HEIGHT + TRACK_TOP;

interface InLane {
  readonly lane: number;
}
type BarInLane = Bar & InLane & { readonly row: number | undefined; readonly isCovered: boolean };

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
  private readonly spans: Keyed<Span & InLane, SVGGElement>;
  private readonly handOvers: Keyed<HandOver, SVGPathElement>;
  private readonly crosses: Keyed<Cross & InLane, SVGGElement>;

  constructor(private readonly root: SVGSVGElement) {
    const layer = (): SVGGElement => this.moving.appendChild(svg('g'));
    this.root.append(definitions(), this.lease, this.moving, this.now, this.nowText);
    const idOf = ({ id }: { readonly id: number }): number => id;
    this.bars = new Keyed<BarInLane, SVGGElement>(layer(), idOf, newBar, (group, bar) =>
      this.placeBar(group, bar),
    );
    this.spans = new Keyed<Span & InLane, SVGGElement>(layer(), idOf, newSpan, (group, span) =>
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
    const textMs = TEXT_WIDTH / this.scale.perMs;
    const covers = (bar: Bar, { from, to = Infinity }: Span) => from < bar.from + textMs && to > bar.from;
    const barsInLanes = lanes.flatMap(({ bars, spans }, lane) => {
      const rows = usesLock ? [] : rowsOf(bars);
      return bars.map((bar, index) => ({
        ...bar,
        lane,
        row: rows[index],
        isCovered: spans.some((span) => covers(bar, span)),
      }));
    });
    this.bars.show(barsInLanes);
    this.spans.show(lanes.flatMap(({ spans }, lane) => spans.map((span) => ({ ...span, lane }))));
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
    const { from, to, lane, row, token, buyer, buyers, isCovered } = bar;
    const [rect, text] = [group.firstElementChild!, group.lastElementChild!];
    const x = this.scale.at(from);
    const width = Math.max(2, this.scale.at(to ?? this.scale.now) - x - 1);
    const isThin = row !== undefined;
    const thin = (TRACK_HEIGHT - 4) / THIN_ROWS;
    const y = topOf(lane) + (isThin ? 2 + (row % THIN_ROWS) * thin : 4);
    const open = token !== undefined && to === undefined;
    set(group, { class: `lane-${lane + 1}`, 'data-bar': token ?? '', 'data-open': open ? lane + 1 : '' });
    set(rect, { class: isThin ? 'thin' : 'bar', x, y, width, height: isThin ? thin - 1 : TRACK_HEIGHT - 8 });
    const label = buyers > 1 ? `× ${buyers}` : buyer.replace('buyer-', '');
    const hasRoom = !isThin && !isCovered && width >= TEXT_WIDTH;
    if (text.textContent !== label) text.textContent = label;
    set(text, {
      x: x + 4,
      y: topOf(lane) + TRACK_HEIGHT / 2 + 4,
      visibility: hasRoom ? 'visible' : 'hidden',
    });
  }

  private placeSpan(group: SVGGElement, { from, to, lane }: Span & InLane): void {
    const x = this.scale.at(from);
    const width = Math.max(2, this.scale.at(to ?? this.scale.now) - x);
    for (const rect of group.children) set(rect, { x, width, y: topOf(lane) + 1, height: TRACK_HEIGHT - 2 });
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
    set(group, { transform: `translate(${this.scale.at(at).toFixed(1)} ${topOf(lane) + TRACK_HEIGHT / 2})` });
  }
}

const newBar = (): SVGGElement => svg('g', {}, svg('rect', { rx: 3 }), svg('text'));

const newSpan = ({ kind }: Span): SVGGElement =>
  svg(
    'g',
    {},
    svg('rect', { class: 'paper', rx: 4 }),
    svg('rect', { class: `span ${kind}`, fill: `url(#hatch-${kind})`, rx: 4 }),
  );

const newHandOver = (): SVGPathElement => svg('path', { class: 'hand-over', 'marker-end': 'url(#tip)' });

const newCross = (): SVGGElement =>
  svg(
    'g',
    {},
    svg('circle', { class: 'cross-ground', r: 12 }),
    svg('path', { class: 'cross', d: 'M-5 -5L5 5M5 -5L-5 5' }),
  );

/** The tip of an arrow; patterns of the times in which an instance is stopped, or dead. */
const definitions = (): SVGDefsElement =>
  svg(
    'defs',
    {},
    svg(
      'marker',
      {
        id: 'tip',
        refX: 7,
        refY: 4,
        markerWidth: 8,
        markerHeight: 8,
        markerUnits: 'userSpaceOnUse',
        orient: 'auto',
      },
      svg('path', { class: 'tip', d: 'M0 0L7 4L0 8z' }),
    ),
    ...(['stopped', 'killed'] as const).map((kind) =>
      svg(
        'pattern',
        {
          id: `hatch-${kind}`,
          width: 8,
          height: 8,
          patternUnits: 'userSpaceOnUse',
          patternTransform: 'rotate(45)',
        },
        svg('line', { class: `hatch-${kind}`, x1: 0, y1: 0, x2: 0, y2: 8 }),
      ),
    ),
  );
