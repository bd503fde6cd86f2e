import { LockConfigurationError } from '../core/errors/lock.errors.js';
import type { LockManager } from '../core/service/lock-manager.js';
import { withinMs } from '../core/util/wait-for.js';
import type { LeaderCandidate } from '../nest/leader/candidate.js';
import type { LockService } from '../nest/service/lock.service.js';
import { checkKey } from '../key/key-check.js';

/** Elections of a test, in which no process is elected by itself. */
export class Elections {
  /** Elections under way, by their candidate: further calls share them. */
  private readonly electing = new Map<LeaderCandidate, Promise<void>>();

  constructor(
    private readonly locks: LockService,
    private readonly manager: LockManager,
    private readonly maxWaitMs: number,
  ) {}

  async elect(key: string): Promise<void> {
    const candidate = this.candidate(key, 'elect');
    if (candidate.isLeader) return;
    const { electing } = this;
    const election =
      electing.get(candidate) ??
      this.settled(candidate, 'elect')
        .then(() => candidate.electOnce())
        .finally(() => electing.delete(candidate));
    electing.set(candidate, election);
    await election;
  }

  async revoke(key: string): Promise<void> {
    const candidate = this.candidate(key, 'revoke');
    const { currentLease } = candidate;
    if (!candidate.isLeader || !currentLease)
      throw new LockConfigurationError(
        `testing.revoke: this process does not lead "${key}". Call elect before.`,
      );
    await this.locks.forceUnlock(key);
    // With mode 'off' the store has it under another name.
    for (const { hold } of currentLease.parts) hold.lose('force-unlocked');
    await this.settled(candidate, 'revoke');
  }

  private async settled(candidate: LeaderCandidate, method: string): Promise<void> {
    const { manager, maxWaitMs } = this;
    let hasSettled = false;
    const settled = candidate.settled().then(() => void (hasSettled = true));
    await withinMs(settled, maxWaitMs, manager.surroundings.runtime);
    if (hasSettled) return;
    throw new LockConfigurationError(
      `testing.${method}: the leader of "${candidate.key}" has not ended ${maxWaitMs} ms (maxWaitMs) after its signal aborted. Let it ` +
        'end when leadership.signal aborts.',
    );
  }

  private candidate(key: string, method: string): LeaderCandidate {
    checkKey(key);
    const { candidates } = this.locks;
    const found = candidates.find(key);
    if (found) return found;
    const keys = candidates.keys.map((one) => `"${one}"`).join(', ');
    throw new LockConfigurationError(
      `testing.${method}: there is no candidate for "${key}"; there ${keys ? `is ${keys}` : 'is none'}.`,
    );
  }
}
