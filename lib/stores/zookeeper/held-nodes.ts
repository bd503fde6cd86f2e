import type { Runtime } from '../../core/util/runtime.js';
import type { Place } from './place.js';
import { getData, setData, type ZkRequest } from './requests.js';
import { CODE, hasCode } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';
import type { ZkChange } from './zk-watches.js';

/** How long a hold lasts before its node is watched, in ms. Most locks are released sooner. */
const WATCH_AFTER_MS = 200;
/** Pause in ms after a failure, before a node is looked at again. */
const RETRY_MS = 100;
/** What Curator writes into the node of a holder that is asked to release. */
const REVOKE = Buffer.from('__REVOKE__');

/** Returns the request that asks the holder with this node to release. */
export const revocationOf = (nodePath: string): ZkRequest<void> => setData(nodePath, REVOKE);

export interface HeldNodesHost {
  readonly runtime: Runtime;
  readonly session: ZkSession;
  /** Forgets a place whose node is gone. */
  remove(place: Place): void;
  /** The node of a hold was deleted by another client, or may have been. */
  atRisk(place: Place): void;
  /** Another client asks the holder to release. */
  revocationRequested(place: Place): void;
}

/** Watches the nodes of holds: another client may delete one, or ask its holder to release. */
export class HeldNodes {
  constructor(private readonly host: HeldNodesHost) {}

  /** Watches the node of a hold that lasts. */
  begin(place: Place): void {
    this.after(WATCH_AFTER_MS, place);
  }

  /** The data of the node of a hold was read. */
  hasRead(place: Place, data: Buffer | undefined): void {
    if (data?.equals(REVOKE)) this.host.revocationRequested(place);
  }

  private after(ms: number, place: Place): void {
    const { runtime } = this.host;
    const timer = runtime.setTimer(() => this.watch(place), ms, true);
    place.watches(() => runtime.clearTimer(timer));
  }

  private watch(place: Place): void {
    const { session } = this.host;
    const { nodePath } = place;
    const changed = (change: ZkChange): void => {
      if (change === 'deleted') this.wasDeleted(place, nodePath);
      else this.watch(place);
    };
    place.watches(session.watches.add('data', nodePath, changed));
    session.request(getData(nodePath, true), { within: place.session }).then(
      (data) => this.hasRead(place, data),
      (failure: unknown) => {
        if (hasCode(failure, CODE.noNode)) this.wasDeleted(place, nodePath);
        // The next connection does not tell of a change until now.
        else if (this.isHeldAt(place, nodePath)) this.after(RETRY_MS, place);
      },
    );
  }

  /** Another client has deleted the node of a hold; or this one did, for a downgrade. */
  private wasDeleted(place: Place, nodePath: string): void {
    if (!this.isHeldAt(place, nodePath)) return;
    if (!place.mayHaveMore) this.host.remove(place);
    this.host.atRisk(place);
  }

  private isHeldAt(place: Place, nodePath: string): boolean {
    const isOver = this.host.session.isClosed || place.session!.over.aborted;
    return place.state === 'held' && place.nodePath === nodePath && !isOver;
  }
}
