import { Occupancy } from '../../support/measure/occupancy.js';
import { Register } from './register.js';

/** Where sections are checked: a file, unless there is only one process, and a number for this process. */
export interface RegisterUse {
  readonly path?: string;
  readonly id: number;
}

/** Runs sections while it checks that each one is alone, and counts them and what went wrong. */
export class Sections {
  private readonly occupancy = new Occupancy();
  private readonly register: Register | undefined;
  private count = 0;
  private failures = 0;
  private firstFailure: string | undefined;
  private closed = false;

  constructor(register: RegisterUse | undefined) {
    this.register = register && new Register(register.path, register.id);
  }

  /** Runs a section. After `close` it runs nothing, because the result is no longer counted. */
  async run(key: string, token: number | undefined, work: () => Promise<void>): Promise<void> {
    if (this.closed) return;
    this.count++;
    this.occupancy.enter(key);
    this.register?.enter(token);
    try {
      await work();
    } finally {
      if (!this.closed) this.register?.leave();
      this.occupancy.leave(key);
    }
  }

  /** Runs a section that others may overlap. The caller checks whether too many overlap. */
  async runShared(work: () => Promise<void>): Promise<void> {
    if (this.closed) return;
    this.count++;
    await work();
  }

  failed(error: unknown): void {
    this.failures++;
    this.firstFailure ??= error instanceof Error ? error.message : String(error);
  }

  close(): { sections: number; violations: number; failures: number; firstFailure?: string } {
    const { register, count: sections, failures, firstFailure } = this;
    const seen = register ? register.overlaps + register.staleTokens : 0;
    this.closed = true;
    register?.close();
    return {
      sections,
      violations: this.occupancy.overlaps + seen,
      failures,
      ...(firstFailure !== undefined && { firstFailure }),
    };
  }
}
