import { textOf } from '../../../core/util/describe.js';
import type { Runtime } from '../../../core/util/runtime.js';
import { StoreFailure, type StoreOutcome } from '../../../core/seam/store-failure.js';
import type { QuorumNode } from './quorum-node.js';

export type NodeReply<T> =
  | { readonly node: QuorumNode; readonly status: 'answered'; readonly reply: T }
  | { readonly node: QuorumNode; readonly status: 'failed'; readonly failure: StoreFailure };

/** Factor of the time in which a majority replied: the call waits that long for the others to decide. */
const MORE_PATIENT = 3;

/** Minimum time to wait for silent nodes, in ms, when a majority has replied and nothing is decided. */
export const SILENT_NODES_MS = 100;

/** How long to wait for silent nodes once a majority has replied. */
export interface SilentNodesWait {
  readonly runtime: Runtime;
  /** Minimum time, in ms. */
  readonly minMs: number;
}

/** Returns more than half of all nodes, also counting nodes that are down: any two majorities have a node in common. */
export const majorityOf = (nodes: number): number => Math.floor(nodes / 2) + 1;

/** A quorum call: the same request to all nodes, and their replies so far. */
export class QuorumCall<T> {
  readonly nodeReplies: NodeReply<T>[] = [];
  private readonly given: T[] = [];
  private listener: (() => void) | undefined;
  private readonly onNodeReply = new Set<() => void>();
  private lateListener: ((nodeReply: NodeReply<T>) => void) | undefined;
  /** An error that is no `StoreFailure` is a bug in a store: it is thrown to the caller. */
  private bug: { readonly error: unknown } | undefined;

  constructor(
    readonly nodes: readonly QuorumNode[],
    request: (node: QuorumNode) => Promise<T>,
  ) {
    for (const node of nodes) {
      request(node).then(
        (reply) => this.add({ node, status: 'answered', reply }),
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

  /** Whether every node has replied or failed. */
  get isComplete(): boolean {
    return this.nodeReplies.length === this.nodes.length;
  }

  get replies(): readonly T[] {
    return this.given;
  }

  /** Failures by node. Includes the last failure of nodes that failed before and have not replied to this call yet. */
  get failures(): ReadonlyMap<QuorumNode, StoreFailure> {
    const failures = new Map<QuorumNode, StoreFailure>();
    for (const node of this.silent) {
      if (node.failing) failures.set(node, new StoreFailure(node.failing.message, 'unknown', node.failing));
    }
    for (const nodeReply of this.nodeReplies)
      if (nodeReply.status === 'failed') failures.set(nodeReply.node, nodeReply.failure);
    return failures;
  }

  private get lacksOnlyFailing(): boolean {
    if (this.given.length < majorityOf(this.nodes.length)) return false;
    return this.silent.every(({ failing }) => failing !== undefined);
  }

  private get silent(): readonly QuorumNode[] {
    return this.nodes.filter((node) => !this.nodeReplies.some((nodeReply) => nodeReply.node === node));
  }

  /** Returns the reply of a node; undefined before it, and when the node has failed. */
  replyOf(node: QuorumNode): T | undefined {
    const nodeReply = this.nodeReplies.find((one) => one.node === node);
    return nodeReply?.status === 'answered' ? nodeReply.reply : undefined;
  }

  /**
   * Resolves as soon as the replies decide, or every node has replied or failed. A failure never decides, so that an
   * error can name the reply of each node.
   *
   * Once a majority has replied without a decision, the call does not wait for nodes that failed before: they would
   * delay the callers that have to retry. With `silentWait` it does not wait long for other silent nodes either.
   */
  until(isDecided: (replies: readonly T[]) => boolean, silentWait?: SilentNodesWait): Promise<void> {
    return new Promise((resolve, reject) => {
      const startedAt = silentWait?.runtime.now() ?? 0;
      let timer: unknown;
      const end = (): void => {
        this.listener = undefined;
        if (timer !== undefined) silentWait?.runtime.clearTimer(timer);
        resolve();
      };
      const look = (): void => {
        if (this.bug) reject(this.bug.error);
        else if (this.isComplete || isDecided(this.given) || this.lacksOnlyFailing) end();
        else if (silentWait && timer === undefined && this.given.length >= majorityOf(this.nodes.length)) {
          const tookMs = silentWait.runtime.now() - startedAt;
          timer = silentWait.runtime.setTimer(end, Math.max(silentWait.minMs, tookMs * MORE_PATIENT), true);
        }
      };
      this.listener = look;
      look();
    });
  }

  /** Resolves when every node has replied or failed. */
  async complete(): Promise<void> {
    while (!this.isComplete) await new Promise<void>((resolve) => this.onNodeReply.add(resolve));
  }

  /** Calls the listener for each node reply, also for the earlier ones. At most one listener. */
  onEach(listener: (nodeReply: NodeReply<T>) => void): void {
    this.lateListener = listener;
    for (const nodeReply of [...this.nodeReplies]) listener(nodeReply);
  }

  private add(nodeReply: NodeReply<T>): void {
    this.nodeReplies.push(nodeReply);
    if (nodeReply.status === 'answered') this.given.push(nodeReply.reply);
    this.listener?.();
    this.lateListener?.(nodeReply);
    for (const notify of this.onNodeReply) notify();
    this.onNodeReply.clear();
  }
}

/** The failure of a quorum call: too few nodes replied. `cause` is an `AggregateError` with those of the nodes. */
export class QuorumFailure extends StoreFailure {
  // Private: a log that shows all of an error would show the nodes, with their clients and the keys of earlier calls.
  readonly #byNode: ReadonlyMap<QuorumNode, StoreFailure>;

  constructor(
    byNode: ReadonlyMap<QuorumNode, StoreFailure>,
    { nodes, majority }: { readonly nodes: readonly QuorumNode[]; readonly majority: number },
    outcome: StoreOutcome,
  ) {
    const failures = [...byNode];
    const each = failures.map(([node, failure]) => `${node.name}: ${withCause(failure)}`).join('; ');
    const all = failures.map(([, failure]) => failure);
    // With no more failures than this, a majority has replied but disagrees: nodes may have lost what it had.
    const most = nodes.length - majority;
    const others = failures.length > most ? '' : ', the others do not agree';
    const overloaded = all.filter((failure) => failure.overloaded).length;
    super(
      `${failures.length} of ${nodes.length} nodes failed${others}, and ${majority} have to agree: ${each}`,
      outcome,
      {
        cause: new AggregateError(all, 'nodes failed'),
        transient: all.every(({ transient }) => transient),
        overloaded: overloaded > 0 && all.length - overloaded <= most,
        passing: all.filter(({ passing }) => !passing).length <= most,
        keyOnly: all.every(({ keyOnly }) => keyOnly),
        claimOnly: all.every(({ claimOnly }) => claimOnly),
      },
    );
    this.#byNode = byNode;
  }

  /** Failures by node. */
  get byNode(): ReadonlyMap<QuorumNode, StoreFailure> {
    return this.#byNode;
  }
}

const withCause = (failure: StoreFailure): string =>
  failure.cause === undefined ? textOf(failure) : `${textOf(failure)} (${textOf(failure.cause)})`;
