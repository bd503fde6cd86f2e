import { TestWorker } from '../../support/worker.js';
import type { SubjectOptions } from '../subjects/subject.js';
import type { Load, LoadResult } from './load.js';
import type { PacedLoad, PacedResult } from './paced.js';

/** How a process stands that holds locks. */
export interface HolderState {
  /** Sections it is, or was, inside of. */
  readonly entered: number;
  readonly failures: number;
  readonly firstFailure: string | undefined;
  /** CPU time since the process began. */
  readonly cpuMs: number;
  readonly heapBytes: number;
}

export type ToSubject =
  | { readonly type: 'open'; readonly name: string; readonly options: SubjectOptions }
  | { readonly type: 'run'; readonly style: string; readonly load: Load }
  | { readonly type: 'pace'; readonly style: string; readonly load: PacedLoad }
  | { readonly type: 'hold'; readonly style: string; readonly keys: readonly string[] }
  | { readonly type: 'look'; readonly heap: boolean }
  | { readonly type: 'release' };

export type FromSubject =
  | { readonly type: 'opened'; readonly styles: readonly string[] }
  | { readonly type: 'ran'; readonly result: LoadResult }
  | { readonly type: 'paced'; readonly result: PacedResult }
  | { readonly type: 'asked' }
  | { readonly type: 'looked'; readonly state: HolderState }
  | { readonly type: 'released'; readonly all: boolean };

/** How long a process may take to open, or to answer after its load and the grace of those who wait at its end. */
const PATIENCE_MS = 60_000;
/** A subject whose `close` takes longer than this is ended. */
const FINISH_MS = 5_000;

/** A process in which one subject is open. */
export class SubjectWorker implements AsyncDisposable {
  private constructor(
    readonly name: string,
    private readonly worker: TestWorker<ToSubject, FromSubject>,
    /** The ways of calling it. */
    readonly styles: readonly string[],
  ) {}

  static async start(name: string, options: SubjectOptions): Promise<SubjectWorker> {
    const worker = TestWorker.start<ToSubject, FromSubject>(
      new URL('./subject.process.ts', import.meta.url),
      { library: 'built' },
    );
    try {
      worker.send({ type: 'open', name, options });
      const { styles } = await worker.next('opened', { timeoutMs: PATIENCE_MS });
      return new SubjectWorker(name, worker, styles);
    } catch (error) {
      await worker[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.worker.pid;
  }

  async run(style: string, load: Load): Promise<LoadResult> {
    this.worker.send({ type: 'run', style, load });
    const timeoutMs = load.forMs + (load.graceMs ?? 0) + PATIENCE_MS;
    const { result } = await this.worker.next('ran', { timeoutMs });
    return result;
  }

  async pace(style: string, load: PacedLoad): Promise<PacedResult> {
    this.worker.send({ type: 'pace', style, load });
    const { result } = await this.worker.next('paced', {
      timeoutMs: load.forMs + load.graceMs + PATIENCE_MS,
    });
    return result;
  }

  /** Asks for the locks of all keys, without waiting until it has them. */
  async hold(style: string, keys: readonly string[]): Promise<void> {
    this.worker.send({ type: 'hold', style, keys });
    await this.worker.next('asked', { timeoutMs: PATIENCE_MS });
  }

  async look({ heap = false } = {}): Promise<HolderState> {
    this.worker.send({ type: 'look', heap });
    const { state } = await this.worker.next('looked', { timeoutMs: PATIENCE_MS });
    return state;
  }

  /** Leaves everything that is held; false when some call has not come back. */
  async release(): Promise<boolean> {
    this.worker.send({ type: 'release' });
    const { all } = await this.worker.next('released', { timeoutMs: PATIENCE_MS });
    return all;
  }

  /** Ends the process at once, whatever it is doing. */
  async end(): Promise<void> {
    await this.worker[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using worker = this.worker;
    await worker.finish({ timeoutMs: FINISH_MS }).catch(() => undefined);
  }
}
