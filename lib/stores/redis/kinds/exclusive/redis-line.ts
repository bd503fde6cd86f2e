import { CompactingMap } from '../../../../core/compacting.js';
import type { Claim, ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { ReleaseOptions, Watch, WatchListener } from '../../../../core/seam/lock-store.js';
import { PlaceInLine, type PlaceOutcome } from '../../../../core/seam/place.js';
import type { AcquireReply, PlaceReply, ReleaseReply } from '../../../../core/seam/reply.js';
import type { StoreFailure } from '../../../../core/seam/store-failure.js';
import type { RedisSession } from '../../connection/redis-session.js';
import { Script } from '../../connection/script.js';
import type { BatchPart, PartRun } from '../../connection/script-batch.js';
import type { RedisLink } from '../redis-link.js';
import { readGrantMessage } from './grant-message.js';
import {
  readLineAcquire,
  readLineInspect,
  readLineKeep,
  readLineRelease,
  type LineAcquire,
} from './line-replies.js';
import { lineProbe, missingRules, PROBE, TURN_CHANNELS_RULE } from './line-rights.js';
import { LINE_ACQUIRE, LINE_FORCE_UNLOCK, LINE_INSPECT, LINE_KEEP, LINE_RELEASE } from './line-scripts.js';
import type { TurnEar } from './turn-ear.js';
import { TurnEars } from './turn-ears.js';

const ACQUIRE: BatchPart = {
  letter: 'A',
  script: new Script(LINE_ACQUIRE, [{ word: 'FENCE', keyOnly: true }]),
  keys: 3,
  args: 4,
};
const RELEASE: BatchPart = { letter: 'R', script: new Script(LINE_RELEASE), keys: 3, args: 3 };
const KEEP = new Script(LINE_KEEP);
export const LINE_FORCING: BatchPart = {
  letter: 'F',
  script: new Script(LINE_FORCE_UNLOCK),
  keys: 3,
  args: 1,
};
const INSPECT = new Script(LINE_INSPECT);

export const LINE_SCRIPTS: readonly Script[] = [
  ACQUIRE.script,
  RELEASE.script,
  KEEP,
  LINE_FORCING.script,
  INSPECT,
  PROBE,
];
export const LINE_BATCH_PARTS: readonly BatchPart[] = [ACQUIRE, RELEASE];

/** Returns the number of tokens as scripts take it: negative for tokens of Redisson's counter. */
export const tokensAsked = ({ counted }: Claim, tokens: number): number => (counted ? -tokens : tokens);

/** What is known of an owner that asks or waits. Most are granted at once: there is one of these for each lock. */
interface Standing {
  readonly claim: ExclusiveClaim;
  /** Since which opening of the ear its messages are heard; undefined while they are not. */
  epoch: number | undefined;
  /** Made when there is something to tell. */
  place: PlaceInLine | undefined;
  /** Nothing more is to come of its place: it was told of a grant, or it was given up. */
  isOver: boolean;
  /** Whether it was asked about since it stands in line: a process does that once when it begins to hear. */
  wasKept: boolean;
}

/** Tells what came of a request. */
type Tell<T> = (answer: T) => void;

/** The exclusive lock with a wait queue in Redis; see `line-scripts.ts`. */
export class RedisLine {
  private readonly ears: TurnEars;
  private readonly standing = new CompactingMap<string, Standing>();

  /** Whether the line is refused on a connection, of those of which that is known. */
  private readonly judged = new WeakMap<RedisSession, boolean>();
  private asking = false;

  /**
   * @param onRefused told of a user who has not the rights for a line: the ACL rules that are missing.
   * @param leave gives up the place of a claim.
   */
  constructor(
    private readonly link: RedisLink,
    private readonly onRefused: (missing: readonly string[]) => void,
    private readonly leave: (claim: ExclusiveClaim, doubt: StoreFailure | undefined) => Promise<void>,
  ) {
    this.ears = new TurnEars(link, {
      heard: (text, ear) => this.heard(text, ear),
      // Who has yet to hear when the hold in the way is announced to end, asks as soon as that is so.
      opened: (ear) =>
        this.mayHaveMissed(({ claim }) => this.ears.of(claim) === ear && this.hears(claim.finalKey)),
      refused: (ear) => {
        const { session } = ear;
        if (session) this.judge(session, [TURN_CHANNELS_RULE]);
      },
      waiting: () => this.waitingClaims(),
    });
  }

  /** Whether it can be used for the lock, on the connection of this moment. */
  isUsableFor(finalKey: string): boolean {
    const { topology, keys } = this.link;
    if (!topology.hasTurns) return false;
    const connection = topology.connectionTo(keys.name(finalKey));
    const session = connection?.current;
    if (!session) return true;
    if (!this.judged.has(session)) this.judge(session, missingRules(connection.probed));
    return !this.judged.get(session);
  }

  /** How many owners wait; for tests. */
  get size(): number {
    return this.standing.size;
  }

  /** Whether an owner may stand in line, or may have been granted there without its process knowing of it. */
  mayStand(owner: string): boolean {
    return this.standing.has(owner);
  }

  /** Something was refused that another way was not: the user's rights may have changed. */
  doubtRights(finalKey: string): void {
    const { commands, keys, topology } = this.link;
    const name = keys.name(finalKey);
    const session = topology.connectionTo(name)?.current;
    if (!session || this.asking) return;
    this.asking = true;
    const { script, keys: touched, args } = lineProbe(keys, topology.hasSlots ? name : undefined);
    commands
      .run(script, touched, args, (reply) => this.judge(session, missingRules(reply)))
      // Refused as a whole: for the key. Whatever else it may be says nothing of rights.
      .catch((failure: Error) => this.judge(session, missingRules(failure.cause)))
      .finally(() => (this.asking = false));
  }

  private judge(session: RedisSession, missing: readonly string[]): void {
    if (!session.alive) return;
    this.judged.set(session, missing.length > 0);
    if (missing.length === 0) return;
    this.onRefused(missing);
    // Who stands in line is to leave it.
    this.mayHaveMissed();
  }

  acquire(claim: ExclusiveClaim, resolve: Tell<AcquireReply>, reject: Tell<unknown>): void {
    const { owner, place: terms } = claim;
    if (!claim.waits || !terms) return this.ask(claim, '', resolve as Tell<LineAcquire>, reject);
    const epoch = this.ears.of(claim)?.epoch;
    const standing: Standing = { claim, epoch, place: undefined, isOver: false, wasKept: false };
    // Before it is sent: the grant may arrive before the answer.
    this.standing.set(owner, standing);
    const { aliveMs, firstLeaseMs, tokens } = terms;
    const deaf = epoch === undefined ? 1 : 0;
    this.ask(
      claim,
      `${aliveMs} ${firstLeaseMs} ${tokensAsked(claim, tokens)} ${deaf}`,
      (reply) => {
        if (reply.status === 'queued') {
          this.ears.open(claim);
          return resolve({ ...reply, place: this.placeOf(standing) });
        }
        this.forget(owner);
        resolve(reply);
      },
      (failure) => {
        this.forget(owner);
        reject(failure);
      },
    );
  }

  private placeOf(standing: Standing): PlaceInLine {
    const { claim } = standing;
    return (standing.place ??= new PlaceInLine((doubt) => {
      standing.isOver = true;
      return this.leave(claim, doubt);
    }));
  }

  /** Tells of the announcements of releases. */
  watch(claim: ExclusiveClaim, listener: WatchListener): Watch {
    const { finalKey } = claim;
    let isOpen = true;
    const look = (): void => {
      if (isOpen) listener.hint();
    };
    const watch = this.link.channels.watch(this.link.keys.ofLock(finalKey).channel, {
      message: look,
      // When the ear opens in the same moment, whoever waits asks once for both reasons.
      hint: () => {
        const ear = this.ears.of(claim);
        if (ear) ear.whenSettled(look);
        else look();
      },
      failed: (failure) => listener.failed(failure),
    });
    return {
      get live() {
        return watch.live;
      },
      close: () => {
        isOpen = false;
        watch.close();
      },
    };
  }

  async keepPlaces(claims: readonly ExclusiveClaim[]): Promise<readonly PlaceReply[]> {
    const { link } = this;
    return link.inBatches(claims, async (batch) => {
      const { epoch } = this.ears.open(batch[0]!);
      const keys = batch.flatMap(({ finalKey }) => this.names(finalKey));
      const deaf = epoch === undefined ? 1 : 0;
      const args = batch.flatMap(({ owner, place }) => [owner, place?.aliveMs ?? 0, deaf]);
      const wereKept = batch.map(({ owner }) => this.standing.get(owner)?.wasKept ?? false);
      const read = (reply: unknown): readonly PlaceReply[] => readLineKeep(reply, wereKept);
      const replies = await link.commands.run(KEEP, keys, args, read);
      for (const [i, { status }] of replies.entries()) {
        const { owner } = batch[i]!;
        const standing = this.standing.get(owner);
        if (status === 'queued' && standing) Object.assign(standing, { epoch, wasKept: true });
        else if (status === 'gone') this.forget(owner);
      }
      return replies;
    });
  }

  /** From now on nothing becomes of the owner's place. False when that is too late: its process was told of a grant. */
  giveUp(owner: string): boolean {
    const standing = this.standing.get(owner);
    if (standing?.isOver) return false;
    if (standing) standing.isOver = true;
    return true;
  }

  release(
    { finalKey, owner }: ExclusiveClaim,
    { doubt, keepForMs }: ReleaseOptions,
    resolve: Tell<ReleaseReply>,
    reject: Tell<unknown>,
  ): void {
    const { commands, publish, keys: names, channels } = this.link;
    this.forget(owner);
    const { keys, channel } = names.ofLock(finalKey);
    const args = [owner, publish, channels.isLive(channel) ? 1 : 0];
    const share = (resolve: Tell<ReleaseReply>, reject: Tell<unknown>): void =>
      commands.share({
        part: RELEASE,
        keys,
        batchKeys: undefined,
        args,
        read: readLineRelease,
        resolve: resolve as Tell<unknown>,
        reject,
      });
    if (!doubt && keepForMs === undefined) return share(resolve, reject);
    const send = (): Promise<ReleaseReply> =>
      keepForMs === undefined
        ? new Promise(share)
        : commands.run(RELEASE.script, keys, [...args, keepForMs], readLineRelease);
    this.link.releaseAfter(doubt, finalKey, send).then(resolve, reject);
  }

  forcing(finalKey: string): PartRun {
    return { part: LINE_FORCING, keys: this.names(finalKey), args: [this.link.publish] };
  }

  /** The owners that wait, in order. */
  waiting(finalKey: string): Promise<readonly string[]> {
    const { commands, keys } = this.link;
    return commands.run(INSPECT, [keys.line(keys.name(finalKey))], [], readLineInspect);
  }

  private ask(claim: ExclusiveClaim, place: string, resolve: Tell<LineAcquire>, reject: Tell<unknown>): void {
    const { commands, publish } = this.link;
    const { finalKey, owner, leaseMs, tokens, rearms } = claim;
    const args = [owner, leaseMs, tokensAsked(claim, tokens), place];
    const keys = this.names(finalKey);
    const read = (reply: unknown): LineAcquire => readLineAcquire(reply, leaseMs, tokens > 0);
    if (rearms) {
      commands.run(ACQUIRE.script, keys, [...args, publish], read).then(resolve, reject);
      return;
    }
    commands.share({
      part: ACQUIRE,
      keys,
      batchKeys: undefined,
      args,
      read,
      resolve: resolve as Tell<unknown>,
      reject,
    });
  }

  private names(finalKey: string): readonly string[] {
    return this.link.keys.ofLock(finalKey).keys;
  }

  /** Whether this process hears the announcements of the lock. */
  private hears(finalKey: string): boolean {
    return this.link.channels.isLive(this.link.keys.ofLock(finalKey).channel);
  }

  /** Nothing is to be known of the owner any more. */
  forget(owner: string): void {
    const standing = this.standing.get(owner);
    if (!standing) return;
    standing.isOver = true;
    this.standing.delete(owner);
  }

  /** Messages may have been lost: to all who wait, or to these. */
  private mayHaveMissed(isMeant: (standing: Standing) => boolean = () => true): void {
    for (const standing of [...this.standing.values()]) {
      if (!standing.isOver && isMeant(standing)) this.placeOf(standing).mayHaveMissed();
    }
  }

  /** False when nobody waits for it any more. */
  private tell(standing: Standing | undefined, outcome: PlaceOutcome): boolean {
    if (!standing || standing.isOver) return false;
    standing.isOver = true;
    this.placeOf(standing).tell(outcome);
    return true;
  }

  private *waitingClaims(): Iterable<ExclusiveClaim> {
    for (const { claim } of this.standing.values()) yield claim;
  }

  /** A grant is believed from a server of which it is certain that the place was asked about there since. */
  private heard(text: string, { epoch }: TurnEar): void {
    const message = readGrantMessage(text);
    if (!message) return;
    const { owner, holdName, token, tokens, firstLeaseMs, placesLeft } = message;
    const standing = this.standing.get(owner);
    if (standing && (epoch === undefined || standing.epoch !== epoch)) return this.mayHaveMissed();
    const told = this.tell(standing, {
      status: 'granted',
      validForMs: firstLeaseMs,
      ...(tokens > 0 && { token, tokens }),
      waiting: placesLeft,
    });
    // Who does not wait any more gives back what it was given. Who has heard of it before has it.
    if (!told && !standing) this.giveBack(holdName, owner);
  }

  private giveBack(holdName: string, owner: string): void {
    const { commands, keys, publish } = this.link;
    const args = [owner, publish, 0];
    commands.run(RELEASE.script, keys.withLine(holdName), args, readLineRelease).catch(() => undefined);
  }
}
