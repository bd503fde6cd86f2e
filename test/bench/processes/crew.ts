import type { Contender } from '../contenders.js';
import type { SubjectOptions } from '../subjects/subject.js';
import { SubjectWorker } from './subject-worker.js';

/**
 * The processes of a run. The next workload reuses processes of the same subject and options: a start takes longer
 * than most measurements, and an app runs code that has run before.
 */
export class Crew implements AsyncDisposable {
  private readonly workers = new Map<string, SubjectWorker[]>();

  /** Returns `count` processes of a contender's subject. They stay until they are dismissed. */
  async of(
    { subject }: Contender,
    count: number,
    options: SubjectOptions,
  ): Promise<readonly SubjectWorker[]> {
    const id = JSON.stringify([subject, options]);
    const have = this.workers.get(id) ?? [];
    this.workers.set(id, have);
    const missing = Array.from({ length: Math.max(0, count - have.length) });
    have.push(...(await Promise.all(missing.map(() => SubjectWorker.start(subject, options)))));
    return have.slice(0, count);
  }

  /** Ends all processes but `count`. */
  async keep({ subject }: Contender, count: number, options: SubjectOptions): Promise<void> {
    const have = this.workers.get(JSON.stringify([subject, options])) ?? [];
    await this.dismiss(have.slice(count));
  }

  /** Ends processes that must not be reused: callers still wait in them, or there are too many. */
  async dismiss(workers: readonly SubjectWorker[]): Promise<void> {
    for (const have of this.workers.values()) {
      for (const worker of workers) {
        const at = have.indexOf(worker);
        if (at >= 0) have.splice(at, 1);
      }
    }
    await Promise.all(workers.map((worker) => worker.end()));
  }

  /** Ends all of a subject, in whatever state they are. */
  async dismissAllOf({ subject }: Contender): Promise<void> {
    const its = [...this.workers.values()].flat().filter(({ name }) => name === subject);
    await this.dismiss(its);
  }

  /** Ends all that are connected to an address. */
  async dismissAllAt(url: string): Promise<void> {
    for (const [id, have] of this.workers) {
      if ((JSON.parse(id) as [string, SubjectOptions])[1].url === url) await this.dismiss([...have]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.workers.values()].flat();
    this.workers.clear();
    await Promise.all(all.map((worker) => worker[Symbol.asyncDispose]()));
  }
}
