/** From values to pixels, with the values that deserve a mark. */
export interface Scale {
  readonly ticks: readonly number[];
  readonly isLogarithmic?: true;
  at(value: number): number;
}

/** More than this between the least and the greatest value, and a linear scale shows only the greatest. */
const WIDE = 15;
const TICKS = 5;
/** Of more decades than this a logarithmic scale has marks at powers of ten only. */
const DECADES = 2.5;

const niceStep = (range: number): number => {
  const rough = range / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= rough)!;
};

export const linear = (max: number, from: number, to: number): Scale => {
  const step = niceStep(max);
  const top = Math.ceil(max / step - 1e-9) * step;
  const ticks: number[] = [];
  for (let n = 0; n * step <= top + step / 2; n++) ticks.push(n * step);
  return { ticks, at: (value) => from + (Math.min(value, top) / top) * (to - from) };
};

/** Marks of a logarithmic scale: every power of ten, and what lies between when there are few of them. */
const marksBetween = (min: number, max: number): number[] => {
  const marks: number[] = [];
  const factors = Math.log10(max / min) > DECADES ? [1] : [1, 2, 5];
  for (let power = 10 ** Math.floor(Math.log10(min)); power <= max * 10; power *= 10) {
    marks.push(...factors.map((factor) => Number((factor * power).toPrecision(6))));
  }
  const first = marks.findLastIndex((mark) => mark <= min);
  const last = marks.findIndex((mark) => mark >= max);
  return marks.slice(Math.max(0, first), last + 1);
};

export const logarithmic = (min: number, max: number, from: number, to: number): Scale => {
  const ticks = marksBetween(min, max);
  const [low, high] = [Math.log10(ticks[0]!), Math.log10(ticks.at(-1)!)];
  return {
    ticks,
    isLogarithmic: true,
    at: (value) => from + ((Math.log10(Math.max(value, ticks[0]!)) - low) / (high - low)) * (to - from),
  };
};

/** Logarithmic for values that lie far apart, else linear from 0. */
export const scaleFor = (values: readonly number[], from: number, to: number): Scale => {
  const positive = values.filter((value) => value > 0);
  const max = Math.max(...positive, 0) || 1;
  const min = Math.min(...positive, max);
  return max / min > WIDE ? logarithmic(min, max, from, to) : linear(max, from, to);
};
