import { Presets, SingleBar } from 'cli-progress';

/** stdout or stderr. */
export type ProgressStream = NodeJS.WriteStream;

export interface Progress {
  /** So many clicks are done, and so much is sold. */
  update(done: number, sold: number): void;
  /** Something worth telling has happened. */
  event(text: string): void;
  stop(): void;
}

const LABEL_WIDTH = 10;

/** A bar on a terminal; elsewhere a line for every quarter and every event. */
export const startProgress = (stream: ProgressStream, label: string, total: number): Progress =>
  stream.isTTY
    ? bar(stream, label.padEnd(LABEL_WIDTH), total)
    : lines(stream, label.padEnd(LABEL_WIDTH), total);

const bar = (stream: ProgressStream, label: string, total: number): Progress => {
  const format = `${label} {bar} {percentage} % of {total} clicks, {sold} sold{event}`;
  const single = new SingleBar({ format, stream, hideCursor: true, barsize: 16 }, Presets.shades_classic);
  single.start(total, 0, { sold: 0, event: '' });
  return {
    update: (done, sold) => single.update(done, { sold }),
    // All of it has to fit into one line.
    event: (text) => single.update({ event: `, ${text.replace(/ while .*/, '')}` }),
    stop: () => single.stop(),
  };
};

const lines = (stream: ProgressStream, label: string, total: number): Progress => {
  let shown = -1;
  return {
    update: (done, sold) => {
      const quarter = Math.floor((4 * done) / total);
      if (quarter === shown) return;
      shown = quarter;
      const percentage = String(25 * quarter).padStart(3);
      stream.write(`${label} ${percentage} % | ${done} of ${total} clicks | ${sold} sold\n`);
    },
    event: (text) => void stream.write(`${label}       | ${text}\n`),
    stop: () => undefined,
  };
};
