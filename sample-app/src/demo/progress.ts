import type { WriteStream } from 'node:tty';
import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  /** So much is done; the note says what is going on. */
  update(done: number, note: string): void;
  stop(): void;
}

/** A bar on a terminal; elsewhere a line for every quarter. */
export const startProgress = (stream: WriteStream, label: string, total: number): Progress =>
  stream.isTTY ? bar(stream, label, total) : lines(stream, label, total);

const bar = (stream: WriteStream, label: string, total: number): Progress => {
  const format = `${label.padEnd(10)} {bar} {percentage} % | {value} of {total} clicks | {note}`;
  const single = new SingleBar({ format, stream, hideCursor: true }, Presets.shades_classic);
  single.start(total, 0, { note: '' });
  return { update: (done, note) => single.update(done, { note }), stop: () => single.stop() };
};

const lines = (stream: WriteStream, label: string, total: number): Progress => {
  let shown = -1;
  return {
    update: (done, note) => {
      const quarter = Math.floor((4 * done) / total);
      if (quarter === shown) return;
      shown = quarter;
      stream.write(`${label.padEnd(10)} ${String(25 * quarter).padStart(3)} % | ${done} of ${total} clicks | ${note}\n`);
    },
    stop: () => undefined,
  };
};
