import { cross, element, image, line, rounded, text } from '../../support/svg.js';

const WIDTH = 760;
const LEFT = 132;
const RIGHT = 24;
const TOP = 56;
const LANE = 58;
const BAR = 18;
/** Width of a letter of a label, at most. */
const LETTER = 6.5;

/** What a lane shows from one time to another. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly kind: 'runs' | 'waits' | 'lease' | 'stopped';
  /** Text in the bar, or behind a short one. */
  readonly label?: string;
}

/** What happens at one time. */
export interface Mark {
  readonly at: number;
  readonly label: string;
  readonly kind: 'event' | 'bad';
  /** Row of the label under the bars of its lane. Default: 0. */
  readonly row?: number;
}

export interface LaneOfTime {
  readonly name: string;
  readonly note?: string;
  readonly bars: readonly Bar[];
  readonly marks?: readonly Mark[];
}

/** The lock goes from one lane to another. */
export interface HandOver {
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

export interface Timeline {
  readonly file: string;
  readonly title: string;
  readonly description: string;
  readonly lanes: readonly LaneOfTime[];
  /** Length of the axis. */
  readonly until: number;
  /** Times with the text that stands there. */
  readonly ticks: readonly (readonly [at: number, text: string])[];
  readonly handOvers?: readonly HandOver[];
}

/** Draws processes as lanes of a time axis. */
export const timelineSvg = ({
  title,
  description,
  lanes,
  until,
  ticks,
  handOvers = [],
}: Timeline): string => {
  const x = (at: number): number => LEFT + (at / until) * (WIDTH - LEFT - RIGHT);
  const top = (lane: number): number => TOP + lane * LANE;
  const ground = top(lanes.length) + 4;
  const grid = ticks.flatMap(([at, label]) => [
    line(x(at), TOP - 8, x(at), ground, 'grid'),
    text(x(at), ground + 16, label, { class: 'small', 'text-anchor': 'middle' }),
  ]);
  const drawn = lanes.flatMap(({ name, note, bars, marks = [] }, lane) => [
    text(20, top(lane) + 13, name, { class: 'strong' }),
    ...(note === undefined ? [] : [text(20, top(lane) + 28, note, { class: 'small' })]),
    ...bars.flatMap((bar) => barOf(bar, x, top(lane))),
    ...marks.flatMap((mark) => markOf(mark, x, top(lane))),
  ]);
  const arrows = handOvers.flatMap(({ at, from, to }) => arrow(x(at), top(from) + BAR, top(to)));
  return image(WIDTH, ground + 32, title, description, [
    ...grid,
    line(LEFT, ground, WIDTH - RIGHT, ground, 'axis'),
    ...drawn,
    ...arrows,
  ]);
};

const barOf = ({ from, to, kind, label }: Bar, x: (at: number) => number, y: number): readonly string[] => {
  const width = Math.max(2, x(to) - x(from));
  const inside = kind === 'runs' || kind === 'stopped' ? 'small on-bar' : 'small';
  return [
    element('rect', { x: x(from), y, width, height: BAR, rx: 3, class: kind }),
    ...(label === undefined ? [] : [text(x(from) + 6, y + 13, label, { class: inside })]),
  ];
};

const markOf = (
  { at, label, kind, row = 0 }: Mark,
  x: (at: number) => number,
  y: number,
): readonly string[] => {
  const isAtEnd = x(at) + label.length * LETTER > WIDTH - RIGHT;
  const anchor = isAtEnd ? 'end' : 'start';
  return [
    kind === 'bad' ? cross(x(at), y + BAR / 2) : line(x(at), y - 3, x(at), y + BAR + 3, 'axis'),
    text(x(at) + (isAtEnd ? -2 : 2), y + BAR + 13 + row * 12, label, {
      class: kind === 'bad' ? 'small bad' : 'small',
      'text-anchor': anchor,
    }),
  ];
};

const arrow = (at: number, from: number, to: number): readonly string[] => {
  const x = rounded(at);
  const isDown = to > from;
  const [start, end] = isDown ? [from, to] : [from - BAR, to + BAR];
  const tip = isDown ? -7 : 7;
  return [
    element('path', { d: `M${x} ${start}V${end + tip}`, class: 'arrow' }),
    element('path', { d: `M${x} ${end}l-4 ${tip}h8z`, class: 'head' }),
  ];
};
