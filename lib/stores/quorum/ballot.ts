import type { Runtime } from '../../core/runtime.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import type { QuorumNode } from './quorum-node.js';

/** What one node said. */
export type Vote<T> =
  | { readonly node: QuorumNode; readonly status: 'answered'; readonly answer: T }
  | { readonly node: QuorumNode; readonly status: 'failed'; readonly failure: StoreFailure };

/** How long the others are waited for once a majority has answered and nothing is decided: so often as long as that took. */
const MORE_PATIENT = 3;

/** How long nodes that do not answer are waited for, in ms at least, while a majority has and nothing is decided. */
export const PATIENCE_MS = 100;

/** How nodes that do not answer are waited for while a majority has. */
export interface Patience {
  readonly runtime: Runtime;
  /** So long at least, in ms. */
  readonly leastMs: number;
}

/** More than half of all nodes, also of those that are down: any two majorities have a node in common. */
export const majorityOf = (nodes: number): number => Math.floor(nodes / 2) + 1;

/** The same question to all nodes, and what they have said so far. */
export class Ballot<T> {
  readonly votes: Vote<T>[] = [];
  private readonly given: T[] = [];
  private listener: (() => void) | undefined;
  private readonly onVote = new Set<() => void>();
  private lateListener: ((vote: Vote<T>) => void) | undefined;
  /** What is no failure of a store is a bug in one: it is thrown to whoever asks. */
  private bug: { readonly error: unknown } | undefined;

  constructor(
    readonly nodes: readonly QuorumNode[],
    ask: (node: QuorumNode) => Promise<T>,
  ) {
    for (const node of nodes) {
      ask(node).then(
        (answer) => this.add({ node, status: 'answered', answer }),
        (failure: unknown) => {
          if (!(failure instanceof StoreFailure)) this.bug ??= { error: failure };
          const shown =
            failure instanceof StoreFailure
              ? failure
              : new StoreFailure('the store of the node has failed', 'unknown', { cause: failure });
          this.add({ node, status: 'failed', failure: shown });
        },
      );
    }
  }

  /** Whether every node has said something. */
  get isComplete(): boolean {
    return this.votes.length === this.nodes.length;
  }

  /** The answers so far. */
  get answers(): readonly T[] {
    return this.given;
  }

  /** The nodes that failed so far, and how; those, too, that have not answered and failed at what was asked before. */
  get failures(): ReadonlyMap<QuorumNode, StoreFailure> {
    const failures = new Map<QuorumNode, StoreFailure>();
    for (const node of this.silent) {
      if (node.failing) failures.set(node, new StoreFailure(node.failing.message, 'unknown', node.failing));
    }
    for (const vote of this.votes) if (vote.status === 'failed') failures.set(vote.node, vote.failure);
    return failures;
  }

  private get lacksOnlyFailing(): boolean {
    if (this.given.length < majorityOf(this.nodes.length)) return false;
    return this.silent.every(({ failing }) => failing !== undefined);
  }

  private get silent(): readonly QuorumNode[] {
    return this.nodes.filter((node) => !this.votes.some((vote) => vote.node === node));
  }

  /**
   * Resolves as soon as the answers decide, or every node has said something. A failure never decides, so an error can name
   * what each node said. Where a majority has answered, and does not agree, nobody waits for a node that failed at what was
   * asked before: it would hold up those who have to try again. With `patience` nobody waits long for one that does not
   * answer, either.
   */
  until(isDecided: (answers: readonly T[]) => boolean, patience?: Patience): Promise<void> {
    return new Promise((resolve, reject) => {
      const startedAt = patience?.runtime.now() ?? 0;
      let timer: unknown;
      const end = (): void => {
        this.listener = undefined;
        if (timer !== undefined) patience?.runtime.clearTimer(timer);
        resolve();
      };
      const look = (): void => {
        if (this.bug) reject(this.bug.error);
        else if (this.isComplete || isDecided(this.given) || this.lacksOnlyFailing) end();
        else if (patience && timer === undefined && this.given.length >= majorityOf(this.nodes.length)) {
          const tookMs = patience.runtime.now() - startedAt;
          timer = patience.runtime.setTimer(end, Math.max(patience.leastMs, tookMs * MORE_PATIENT), true);
        }
      };
      this.listener = look;
      look();
    });
  }

  /** Resolves when every node has said something. */
  async complete(): Promise<void> {
    while (!this.isComplete) await new Promise<void>((resolve) => this.onVote.add(resolve));
  }

  /** Tells of each vote, also of those that came before. At most one listener. */
  onEach(listener: (vote: Vote<T>) => void): void {
    this.lateListener = listener;
    for (const vote of [...this.votes]) listener(vote);
  }

  private add(vote: Vote<T>): void {
    this.votes.push(vote);
    if (vote.status === 'answered') this.given.push(vote.answer);
    this.listener?.();
    this.lateListener?.(vote);
    for (const heard of this.onVote) heard();
    this.onVote.clear();
  }
}
