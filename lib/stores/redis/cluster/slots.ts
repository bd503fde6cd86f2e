import { hashSlot } from '../hash-slot.js';
import { RedisFailure } from '../connection/redis-failure.js';
import { impossible } from '../connection/strict-replies.js';

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

export interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly master: NodeAddress;
}

export const textOfAddress = ({ host, port }: NodeAddress): string => `${host}:${port}`;

/**
 * Reads the reply of CLUSTER SLOTS.
 *
 * @param requested host that was asked; it stands for a server that does not give its own name.
 */
export const readSlots = (reply: unknown, requested: string): readonly SlotRange[] => {
  if (!Array.isArray(reply)) throw impossible(reply);
  return reply.map((one: unknown) => {
    const [from, to, master] = Array.isArray(one) ? (one as unknown[]) : [];
    const [host, port] = Array.isArray(master) ? (master as unknown[]) : [];
    if (!isSlot(from) || !isSlot(to) || typeof port !== 'number') throw impossible(reply);
    const isNamed = typeof host === 'string' && host !== '' && host !== '?';
    return { from, to, master: { host: isNamed ? host : requested, port } };
  });
};

const isSlot = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < 16_384;

/** The state in CLUSTER INFO. The server with the greatest epoch knows of the latest election. */
export interface ClusterView {
  readonly epoch: number;
  readonly isOk: boolean;
}

export const readClusterInfo = (reply: unknown): ClusterView => {
  if (typeof reply !== 'string') throw impossible(reply);
  const epoch = /^cluster_current_epoch:(\d+)/m.exec(reply)?.[1];
  return { epoch: Number(epoch ?? 0), isOk: /^cluster_state:ok/m.test(reply) };
};

/** Redirect of a server that does not have the slot of a request. */
export type Redirect =
  | { readonly kind: 'MOVED' | 'ASK'; readonly slot: number; readonly to: NodeAddress }
  | { readonly kind: 'TRYAGAIN' };

/** Reads a redirect from an error; returns undefined for any other error. */
export const readRedirect = (message: string, requested: string): Redirect | undefined => {
  if (message.startsWith('TRYAGAIN')) return { kind: 'TRYAGAIN' };
  const [, kind, slot, host, port] = /^(MOVED|ASK) (\d+) (\S*):(\d+)/.exec(message) ?? [];
  if (kind === undefined) return undefined;
  return {
    kind: kind as 'MOVED' | 'ASK',
    slot: Number(slot),
    to: { host: host === '' || host === '?' ? requested : host!, port: Number(port) },
  };
};

/** Returns the failure for a name whose slot has no server. The slot may get one at any moment. */
export const slotWithoutServer = (name: string): RedisFailure =>
  new RedisFailure(
    `no server of the cluster has the slot ${hashSlot(name)}; look at CLUSTER NODES`,
    'not-executed',
    { transient: true },
  );
