import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { LockManager } from '../../core/service/lock-manager.js';
import { invalidOption } from '../../core/settings/option-checks.js';
import type { LockCall } from '../../core/settings/lock-call.js';
import { LeaderCandidate, type LeaderFunction } from './candidate.js';

/** Candidates of one lock service, one for each key. */
export class Candidates {
  private readonly all = new Map<string, LeaderCandidate>();

  /** @param contend whether candidates contend by themselves; else only a test elects them */
  constructor(
    private readonly manager: LockManager,
    private readonly contend: boolean,
  ) {}

  /**
   * Adds a candidate, which contends from now on.
   *
   * @param callNow returns the call for one candidacy, if that varies
   */
  add(key: string, lead: LeaderFunction, call: LockCall, callNow?: () => LockCall): LeaderCandidate {
    checkFunctionOf('lead', lead);
    if (this.all.has(key)) {
      throw new LockConfigurationError(
        `This process is a candidate for "${this.manager.shown(key)}" already. Stop that one first, or give this one ` +
          'another key.',
        { key: this.manager.shown(key) },
      );
    }
    const over = (candidate: LeaderCandidate): void => {
      if (this.all.get(key) === candidate) this.all.delete(key);
    };
    const candidate = new LeaderCandidate(this.manager, key, call, lead, over, callNow);
    this.all.set(key, candidate);
    if (this.contend) candidate.start();
    return candidate;
  }

  find(key: string): LeaderCandidate | undefined {
    return this.all.get(key);
  }

  get keys(): readonly string[] {
    return [...this.all.keys()];
  }

  /** Labels of what this process leads now. Undefined if it is no candidate for anything. */
  get leads(): readonly string[] | undefined {
    if (this.all.size === 0) return undefined;
    return [...this.all.values()].filter(({ isLeader }) => isLeader).map(({ label }) => label);
  }
}

/** Refuses what is no function, and a generator function, whose body would never run. */
const checkFunctionOf = (method: string, lead: unknown): void => {
  if (typeof lead !== 'function') invalidOption(`The second argument of ${method}`, 'a function', lead);
  if (!isGenerator(lead)) return;
  throw new LockConfigurationError(
    `${method} was given a generator function, whose body would never run. Write an async function.`,
  );
};

/** Returns whether a function is a generator function, also an async one. */
export const isGenerator = (value: unknown): boolean =>
  /Generator/.test(Object.prototype.toString.call(value));
