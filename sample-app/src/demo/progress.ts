import { Presets, SingleBar } from 'cli-progress';
import type { Paint } from './paint.js';

/** stdout or stderr. */
export type ProgressStream = NodeJS.WriteStream;

export interface Progress {
  /** Shows the number of clicks that are done, and of articles sold. */
  update(done: number, sold: number): void;
  /** Shows an event. */
  event(text: string): void;
  /** Shows the final numbers of the sale. */
  finish(done: number, sold: number): void;
  /** Restores the terminal, also after a failed sale. */
  stop(): void;
}

const LABEL_WIDTH = 10;

/** Shows a bar on a terminal; elsewhere a line for every quarter, for every event, and after a silence. */
export const startProgress = (
  stream: ProgressStream,
  label: string,
  total: number,
  paint: Paint,
): Progress => {
  const padded = paint('name', label) + ' '.repeat(Math.max(0, LABEL_WIDTH - label.length));
  return stream.isTTY ? bar(stream, padded, total) : lines(stream, padded, total);
};

/** Returns the duration of a sale, as text. */
const took = (startedAt: number): string => `${Math.round((performance.now() - startedAt) / 1_000)} s`;

const bar = (stream: ProgressStream, label: string, total: number): Progress => {
  const format = `${label} {bar} {percentage} % of {total} clicks, {sold} sold, {duration} s{event}`;
  const single = new SingleBar({ format, stream, hideCursor: true, barsize: 16 }, Presets.shades_classic);
  single.start(total, 0, { sold: 0, event: '' });
  return {
    update: (done, sold) => single.update(done, { sold }),
    // The bar and the event have to fit into one line.
    event: (text) => single.update({ event: `, ${text.replace(/ while .*/, '')}` }),
    finish: (done, sold) => single.update(done, { sold, event: '' }),
    stop: () => single.stop(),
  };
};

/** Longest time without a line, in ms. */
const MAX_SILENCE_MS = 3_000;

const lines = (stream: ProgressStream, label: string, total: number): Progress => {
  const startedAt = performance.now();
  let shown = -1;
  let wroteAt = startedAt;
  const write = (text: string) => {
    wroteAt = performance.now();
    stream.write(`${text}\n`);
  };
  const line = (done: number, sold: number, end = '') => {
    const percentage = String(Math.floor((100 * done) / total)).padStart(3);
    write(`${label} ${percentage} % | ${done} of ${total} clicks | ${sold} sold${end}`);
  };
  return {
    update: (done, sold) => {
      const quarter = Math.floor((4 * done) / total);
      // `finish` writes the last line.
      if (quarter === 4) return;
      if (quarter !== shown) line(done, sold);
      else if (performance.now() - wroteAt >= MAX_SILENCE_MS) line(done, sold, ` | ${took(startedAt)}`);
      shown = quarter;
    },
    event: (text) => write(`${label}       | ${text}`),
    finish: (done, sold) => line(done, sold, ` | ${took(startedAt)}`),
    stop: () => undefined,
  };
};
