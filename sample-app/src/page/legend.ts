import { html, set, svg, write } from './dom.js';
import { newBar, newCross, newHandOver, newSpan } from './shapes.js';

const [WIDTH, HEIGHT] = [30, 16];
const AREA = { x: 1, y: 1, width: WIDTH - 2, height: HEIGHT - 2 };

const bar = (label: string): SVGElement => {
  const group = newBar();
  set(group.firstElementChild!, { ...AREA, class: 'bar' });
  set(group.children[1]!, { x: WIDTH / 2, y: 12, 'text-anchor': 'middle' });
  write(group.children[1]!, label);
  return group;
};

const span = (kind: 'stopped' | 'killed'): SVGElement => {
  const group = newSpan({ kind });
  set(group.children[1]!, AREA);
  if (kind === 'stopped') set(group.children[2]!, { d: `M${(2 * WIDTH) / 3} 1v${HEIGHT - 2}` });
  return group;
};

const arrow = (): SVGElement => {
  const path = newHandOver();
  set(path, { d: `M2 ${HEIGHT / 2}H${WIDTH - 2}` });
  return path;
};

const cross = (): SVGElement => {
  const group = newCross();
  set(group, { transform: `translate(${WIDTH / 2} ${HEIGHT / 2}) scale(0.8)` });
  return group;
};

const WITH_LOCK: readonly (readonly [shape: () => SVGElement, text: string])[] = [
  [() => bar('14'), 'has the lock, for buyer 14 (×2: two in a row)'],
  [() => bar('✓'), 'sold'],
  [() => svg('rect', { ...AREA, class: 'lease', rx: 3 }), 'rest of the lease'],
  [arrow, 'the lock goes to'],
  [() => span('stopped'), 'stopped; its lease ends at the bar'],
  [() => span('killed'), 'killed, lease not over'],
  [cross, 'late write refused'],
];
const WITHOUT_LOCK: typeof WITH_LOCK = [
  [() => svg('rect', { ...AREA, y: 6, height: 4, class: 'thin' }), 'one buyer inside'],
];

/** Returns what the shapes of the drawing mean. */
export const legend = (usesLock: boolean): HTMLElement[] =>
  (usesLock ? WITH_LOCK : WITHOUT_LOCK).map(([shape, text]) =>
    html('span', {}, svg('svg', { class: 'drawing', width: WIDTH, height: HEIGHT }, shape()), text),
  );
