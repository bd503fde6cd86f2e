import { TestWorker } from '../../support/worker.js';
import type { SubjectOptions } from '../subjects/subject.js';
import type { Load, LoadResult } from './load.js';

export type ToSubject =
  | { readonly type: 'open'; readonly name: string; readonly options: SubjectOptions }
  | { readonly type: 'run'; readonly style: string; readonly load: Load };

export type FromSubject =
  | { readonly type: 'opened'; readonly styles: readonly string[] }
  | { readonly type: 'ran'; readonly result: LoadResult };

/** How much longer than its load a process may take: those who wait at the end are still served. */
const GRACE_MS = 60_000;

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
      const { styles } = await worker.next('opened', { timeoutMs: GRACE_MS });
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
    const { result } = await this.worker.next('ran', { timeoutMs: load.forMs + GRACE_MS });
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using worker = this.worker;
    await worker.finish();
  }
}
