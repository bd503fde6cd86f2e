import cliProgress from 'cli-progress';

/** Says how far a workload is: a bar on a terminal, plain lines elsewhere. */
export interface Progress {
  begin(title: string, steps: number): void;
  step(): void;
  /** Ends what was begun; safe when nothing was. */
  end(): void;
}

/** Plain lines come at most this often, in ms. */
const LINE_EVERY_MS = 10_000;
/** Longer titles would break the line that a bar draws over and over. */
const TITLE_CHARS = 60;

/** @param of how many workloads there are in all. */
export const progressOn = (stream: NodeJS.WriteStream, of: number): Progress =>
  stream.isTTY ? new Bar(stream, of) : new Lines(stream, of);

class Bar implements Progress {
  private bar: cliProgress.SingleBar | undefined;
  private begun = 0;

  constructor(
    private readonly stream: NodeJS.WriteStream,
    private readonly of: number,
  ) {}

  begin(title: string, steps: number): void {
    this.end();
    const short = title.length > TITLE_CHARS ? `${title.slice(0, TITLE_CHARS - 1)}…` : title;
    this.bar = new cliProgress.SingleBar({
      format: `{bar} {percentage}% ${++this.begun}/${this.of} ${short}, {duration_formatted}`,
      barsize: 24,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      hideCursor: true,
      stream: this.stream,
    });
    this.bar.start(steps, 0);
  }

  step(): void {
    this.bar?.increment();
  }

  end(): void {
    this.bar?.stop();
    this.bar = undefined;
  }
}

class Lines implements Progress {
  private title = '';
  private begun = 0;
  private done = 0;
  private steps = 0;
  private saidAt = 0;

  constructor(
    private readonly stream: NodeJS.WriteStream,
    private readonly of: number,
  ) {}

  begin(title: string, steps: number): void {
    this.title = title;
    this.steps = steps;
    this.done = 0;
    this.saidAt = performance.now();
    this.stream.write(`${++this.begun}/${this.of} ${title} …\n`);
  }

  step(): void {
    this.done++;
    if (performance.now() - this.saidAt < LINE_EVERY_MS || this.done === this.steps) return;
    this.saidAt = performance.now();
    this.stream.write(`  ${Math.round((100 * this.done) / this.steps)}% of ${this.title}\n`);
  }

  end(): void {
    this.title = '';
  }
}
