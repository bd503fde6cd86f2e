import type { Span } from '../demo/live/snapshot.js';
import { svg } from './dom.js';

// The shapes of the drawing, and of its legend.

/** A block, with its buyer and a tick. */
export const newBar = (): SVGGElement => svg('g', {}, svg('rect', { rx: 3 }), svg('text'), svg('text'));

export const newSpan = ({ kind }: Pick<Span, 'kind'>): SVGGElement =>
  svg(
    'g',
    {},
    svg('rect', { class: 'paper', rx: 4 }),
    svg('rect', { class: `span ${kind}`, fill: `url(#hatch-${kind})`, rx: 4 }),
    svg('path', { class: 'lease-end' }),
  );

export const newHandOver = (): SVGPathElement =>
  svg('path', { class: 'hand-over', 'marker-end': 'url(#tip)' });

export const newCross = (): SVGGElement =>
  svg(
    'g',
    {},
    svg('circle', { class: 'cross-ground', r: 9 }),
    svg('path', { class: 'cross', d: 'M-4 -4L4 4M4 -4L-4 4' }),
  );

/** The tip of an arrow; patterns of the times in which an instance is stopped, or dead. */
export const definitions = (): SVGDefsElement =>
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
          patternTransform: `rotate(${kind === 'killed' ? 45 : -45})`,
        },
        svg('line', { class: `hatch-${kind}`, x1: 0, y1: 0, x2: 0, y2: 8 }),
      ),
    ),
  );
