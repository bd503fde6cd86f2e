import { Presets, SingleBar } from 'cli-progress';

/** stdout or stderr. */
export type ProgressStream = NodeJS.WriteStream;

export interface Progress {
  /** So much is done; the note says what is going on. */
  update(done: number, note: string): void;
  stop(): void;
}

const LABEL_WIDTH = 10;

/** A bar on a terminal; elsewhere a line for every quarter. */
export const startProgress = (stream: ProgressStream, label: string, total: number): Progress =>
  stream.isTTY
    ? bar(stream, label.padEnd(LABEL_WIDTH), total)
    : lines(stream, label.padEnd(LABEL_WIDTH), total);

const bar = (stream: ProgressStream, label: string, total: number): Progress => {
  const format = `${label} {bar} {percentage} % | {value} of {total} clicks | {note}`;
  const single = new SingleBar({ format, stream, hideCursor: true, barsize: 24 }, Presets.shades_classic);
  single.start(total, 0, { note: '' });
  return { update: (done, note) => single.update(done, { note }), stop: () => single.stop() };
};

const lines = (stream: ProgressStream, label: string, total: number): Progress => {
  let shown = -1;
  return {
    update: (done, note) => {
      const quarter = Math.floor((4 * done) / total);
      if (quarter === shown) return;
      shown = quarter;
      stream.write(`${label} ${String(25 * quarter).padStart(3)} % | ${done} of ${total} clicks | ${note}\n`);
    },
    stop: () => undefined,
  };
};
