import type { Runtime } from '../util/runtime.js';
import type { ProcessNotes } from '../seam/process-notes.js';
import { waitFor } from '../util/wait-for.js';
import { objectIn, textIn } from '../seam/process-record.js';

/** How long an answer stays in the store, in ms, if its reader has gone. */
const ANSWER_TTL_MS = 2_000;
/** Maximum number of holds in one question or answer. */
const MAX_HOLDS = 1_000;
/** Pauses between the looks for answers, in ms. */
const PAUSES_MS = [2, 4, 8, 16, 32, 64];

/** A hold, as its own process knows it. */
export interface OwnHold {
  readonly owner: string;
  readonly grantedAt: number;
  readonly label?: string | undefined;
}

/** What a process tells about one of its holds. */
export interface HoldFacts {
  /** How long its current holder has had it, in whole ms. */
  readonly heldMs?: number;
  /** `label` of the call that holds it. */
  readonly label?: string;
}

const factsOf = ({ grantedAt, label }: OwnHold, now: number): HoldFacts => ({
  heldMs: Math.max(0, Math.round(now - grantedAt)),
  ...(label !== undefined && { label }),
});

/** Returns the facts of the holds of some owners, by owner. */
export const factsOfOwners = (
  owners: ReadonlySet<string>,
  holds: readonly OwnHold[],
  now: number,
): ReadonlyMap<string, HoldFacts> =>
  new Map(holds.filter(({ owner }) => owners.has(owner)).map((hold) => [hold.owner, factsOf(hold, now)]));

/** Returns the answer to a question of another process; undefined for a text that is none. */
export const answerTo = (
  question: string,
  holds: readonly OwnHold[],
  now: number,
): { readonly name: string; readonly text: string; readonly ttlMs: number } | undefined => {
  const { answer, owners } = objectIn(question);
  if (typeof answer !== 'string' || !/^[\w-]{1,36}$/.test(answer) || !Array.isArray(owners)) return undefined;
  const asked = new Set(owners.slice(0, MAX_HOLDS).filter((owner) => typeof owner === 'string'));
  const text = JSON.stringify(Object.fromEntries(factsOfOwners(asked, holds, now)));
  return { name: answerName(answer), text, ttlMs: ANSWER_TTL_MS };
};

/** Returns the name of the note with an answer. No process has such a name: an answer replaces no record. */
const answerName = (id: string): string => `answer-${id}`;

const factsIn = (value: unknown): HoldFacts => {
  const { heldMs, label } = Object(value) as Record<string, unknown>;
  const text = textIn(label);
  return {
    ...(Number.isSafeInteger(heldMs) && { heldMs: heldMs as number }),
    ...(text !== undefined && { label: text }),
  };
};

/** Questions to other processes about their holds. */
export class Questions {
  constructor(
    private readonly notes: ProcessNotes,
    private readonly runtime: Runtime,
  ) {}

  /**
   * Asks processes about their holds, and resolves with the facts by owner. A process that does not answer at once is left
   * out. Rejects when the store fails.
   *
   * @param owners the owners to ask for, by process
   */
  async ask(owners: ReadonlyMap<string, readonly string[]>): Promise<ReadonlyMap<string, HoldFacts>> {
    const facts = new Map<string, HoldFacts>();
    const { notes, runtime } = this;
    if (!notes.send) return facts;
    /** Names of the answers, each with the owners that its process was asked for. */
    const pending = new Map<string, ReadonlySet<string>>();
    await Promise.all(
      [...owners].map(async ([process, ofProcess]) => {
        const answer = runtime.newId();
        const question = JSON.stringify({ answer, owners: ofProcess.slice(0, MAX_HOLDS) });
        if (await notes.send!(process, question)) pending.set(answerName(answer), new Set(ofProcess));
      }),
    );
    for (const pauseMs of PAUSES_MS) {
      if (pending.size === 0) break;
      await this.pause(pauseMs);
      const names = [...pending.keys()];
      for (const [i, text] of (await notes.read(names)).entries()) {
        const name = names[i]!;
        const asked = pending.get(name)!;
        if (text === undefined) continue;
        pending.delete(name);
        notes.remove(name).catch(() => undefined);
        for (const [owner, value] of Object.entries(objectIn(text)))
          if (asked.has(owner)) facts.set(owner, factsIn(value));
      }
    }
    return facts;
  }

  private pause(ms: number): Promise<void> {
    return waitFor<void>(this.runtime, { ms, onTime: (pause) => pause.resolve() });
  }
}
