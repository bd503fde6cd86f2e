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

export const progressOn = (stream: NodeJS.WriteStream): Progress =>
  stream.isTTY ? new Bar(stream) : new Lines(stream);

class Bar implements Progress {
  private bar: cliProgress.SingleBar | undefined;

  constructor(private readonly stream: NodeJS.WriteStream) {}

  begin(title: string, steps: number): void {
    this.end();
    this.bar = new cliProgress.SingleBar({
      format: `{bar} {percentage}% ${title}, {duration_formatted}`,
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
  private done = 0;
  private steps = 0;
  private saidAt = 0;

  constructor(private readonly stream: NodeJS.WriteStream) {}

  begin(title: string, steps: number): void {
    this.title = title;
    this.steps = steps;
    this.done = 0;
    this.saidAt = performance.now();
    this.stream.write(`${title} …\n`);
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
