import type { Runtime } from '../util/runtime.js';
import type { ProcessNotes } from '../seam/process-notes.js';
import type { LockStore } from '../seam/lock-store.js';
import type { Holder, KeyState } from '../seam/reply.js';
import { waitFor } from '../util/wait-for.js';
import type { OwnProcess } from './own-process.js';
import { holderOf, holderWith, recordIn, type LockHolder } from '../seam/process-record.js';
import { factsOfOwners, Questions, type HoldFacts, type OwnHold } from './questions.js';

/** Maximum delay of an error or an event by the look for the holder, in ms. */
const LOOK_MS = 50;
/** Maximum delay of a list or an `inspect`, in ms. */
const DESCRIBE_MS = 250;
/** Time in ms for which a record counts as known: a name of a process never changes. */
const KNOWN_MS = 60_000;
/** The same for a process without a record. */
const UNKNOWN_MS = 1_000;
/** Maximum number of known records. Beyond it the oldest ones are forgotten, but none that is asked for at the moment. */
const MAX_KNOWN = 1_000;

/** A holder of a key, and the process behind it. */
export interface InspectedHolder extends Holder, HoldFacts {
  /** Service that holds it. Undefined for a permit of a service without a record, and with `holderInfo: false`. */
  readonly process?: LockHolder;
}

/** State of a key at this moment, as `locks.inspect()` shows it. */
export interface InspectedKey extends KeyState {
  readonly holders: readonly InspectedHolder[];
  /** Services of the owners in `waiting`, in its order. Missing without one of them, and with `holderInfo: false`. */
  readonly waitingProcesses?: readonly (LockHolder | undefined)[];
}

export interface HoldersHost {
  readonly store: LockStore;
  readonly runtime: Runtime;
  readonly own: OwnProcess;
  /** Undefined when holders are not shown: see the option `holderInfo` and `LockStore.processes`. */
  readonly notes: ProcessNotes | undefined;
  /** Returns the holds of this service. */
  holds(): readonly OwnHold[];
}

/** Finds the processes that hold keys. Sends nothing before a caller is refused or asks. No failure reaches a caller. */
export class Holders {
  private readonly known = new Map<string, { readonly holder: LockHolder; readonly until: number }>();
  private readonly looks = new Map<string, Promise<LockHolder | undefined>>();
  private readonly questions: Questions | undefined;

  constructor(private readonly host: HoldersHost) {
    const { notes, runtime } = host;
    this.questions = notes && new Questions(notes, runtime);
  }

  /**
   * Resolves with the holder of a key within 50 ms; undefined when it is unknown. It asks the store also for a key that this
   * service holds: a forced unlock may have given it to another one.
   */
  of(finalKey: string): Promise<LockHolder | undefined> {
    if (!this.host.notes) return Promise.resolve(undefined);
    const running = this.looks.get(finalKey);
    if (running) return running;
    const look = this.look(finalKey);
    this.looks.set(finalKey, look);
    void look.then(() => this.looks.delete(finalKey));
    return look;
  }

  /** Adds the processes, and what they tell about their holds. */
  async describe<S extends KeyState>(states: readonly S[]): Promise<readonly (S & InspectedKey)[]> {
    if (!this.host.notes) return states;
    const byProcess = new Map<string, string[]>();
    for (const { owner } of states.flatMap(({ holders }) => holders)) {
      const holder = holderOf(owner);
      if (holder?.client !== 'node') continue;
      const owners = byProcess.get(holder.instanceId);
      if (owners) owners.push(owner);
      else byProcess.set(holder.instanceId, [owner]);
    }
    const { instanceId } = this.host.own.holder;
    const ownOwners = new Set(byProcess.get(instanceId));
    const facts = new Map(factsOfOwners(ownOwners, this.host.holds(), this.host.runtime.now()));
    byProcess.delete(instanceId);
    const waiting = states.flatMap((state) => state.waiting.map(holderOf));
    const ids = waiting.flatMap((one) => (one?.client === 'node' ? [one.instanceId] : []));
    const others = new Set([...byProcess.keys(), ...ids]);
    others.delete(instanceId);
    if (others.size > 0) {
      const asked = this.questions
        ?.ask(byProcess)
        .then((told) => told.forEach((one, of) => facts.set(of, one)));
      await this.atMost(DESCRIBE_MS, Promise.all([asked, this.readRecords([...others])]));
    }
    return states.map((state) => ({
      ...state,
      holders: state.holders.map((holder) => {
        const process = this.seen(holder.owner);
        return { ...holder, ...(process && { process }), ...facts.get(holder.owner) };
      }),
      ...(state.waiting.length > 0 && {
        waitingProcesses: state.waiting.map((owner) => this.seen(owner)),
      }),
    }));
  }

  private async look(finalKey: string): Promise<LockHolder | undefined> {
    let owner = '';
    const looking = async (): Promise<void> => {
      const state = await this.host.store.inspect(finalKey);
      owner = state?.holders.find((holder) => holderOf(holder.owner))?.owner ?? '';
      const found = holderOf(owner);
      const isOther = found?.client === 'node' && found.instanceId !== this.host.own.holder.instanceId;
      if (isOther) await this.readRecords([found.instanceId]);
    };
    await this.atMost(LOOK_MS, looking());
    return this.seen(owner);
  }

  /** Waits for work that may fail. */
  private atMost(ms: number, work: Promise<unknown>): Promise<void> {
    return waitFor<void>(this.host.runtime, {
      ms,
      listen: (waiting) => {
        const over = (): void => waiting.resolve();
        work.then(over, over);
      },
      onTime: (waiting) => waiting.resolve(),
    });
  }

  /** Returns the service of an owner with its record, if that is known. */
  private seen(owner: string): LockHolder | undefined {
    const holder = holderOf(owner);
    if (!holder) return undefined;
    const { own } = this.host;
    if (holder.instanceId === own.holder.instanceId) return own.holder;
    const known = this.known.get(holder.instanceId)?.holder ?? holder;
    return owner.includes(':') || known.host !== undefined ? known : undefined;
  }

  private async readRecords(ids: readonly string[]): Promise<void> {
    const { notes, runtime } = this.host;
    const now = runtime.now();
    const missing = ids.filter((id) => (this.known.get(id)?.until ?? -Infinity) <= now);
    if (missing.length === 0 || !notes) return;
    const texts = await notes.read(missing);
    const asked = new Set(ids);
    for (const id of this.known.keys()) {
      if (this.known.size + missing.length <= MAX_KNOWN) break;
      if (!asked.has(id)) this.known.delete(id);
    }
    for (const [i, id] of missing.entries()) {
      const text = texts[i];
      const holder = holderWith(id, text === undefined ? {} : recordIn(text));
      this.known.set(id, { holder, until: now + (text === undefined ? UNKNOWN_MS : KNOWN_MS) });
    }
  }
}
