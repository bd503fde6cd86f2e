import type { Claim } from '../../../lib/core/seam/claim.js';
import type { ExtendReply, KeyState, QueueEntryReply, ReleaseReply } from '../../../lib/core/seam/reply.js';
import type { SpaceReply } from '../../../lib/stores/memory/kinds/kind-holds.js';

/** What a client asks of a semaphore or a latch. */
export interface NumberCommand {
  readonly key: string;
  readonly what: 'take' | 'set' | 'add' | 'drain' | 'countDown' | 'remove' | 'look';
  readonly amount: number;
}

/** What a client can send to the simulated server. */
export type Command =
  | { readonly name: 'acquire'; readonly claim: Claim; readonly notSubscribed: boolean }
  | {
      readonly name: 'keep';
      readonly claims: readonly Claim[];
      readonly notSubscribed: boolean;
    }
  | { readonly name: 'extend'; readonly claims: readonly Claim[] }
  | { readonly name: 'downgrade'; readonly claim: Claim }
  | { readonly name: 'release'; readonly claim: Claim; readonly keepForMs?: number | undefined }
  | ({ readonly name: 'number' } & NumberCommand)
  | { readonly name: 'inspect'; readonly key: string }
  | { readonly name: 'forceUnlock'; readonly key: string }
  | { readonly name: 'subscribe'; readonly channels: readonly string[] }
  | { readonly name: 'unsubscribe'; readonly channel: string }
  | { readonly name: 'kill'; readonly session: number }
  | { readonly name: 'identify' }
  | { readonly name: 'ping' };

/** An error reply: certainly not executed. */
export interface Refusal {
  readonly refused: string;
  readonly transient?: boolean;
  readonly keyOnly?: boolean;
}

export type Value =
  | SpaceReply
  | readonly QueueEntryReply[]
  | readonly ExtendReply[]
  | ExtendReply
  | KeyState
  | ReleaseReply
  | number
  | boolean
  | null;

export type Reply = { readonly value: Value } | Refusal;
