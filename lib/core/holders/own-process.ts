import { LockConfigurationError } from '../errors/lock.errors.js';
import type { LockLogger } from '../report/lock-events.js';
import type { Runtime } from '../util/runtime.js';
import type { ProcessNotes } from '../seam/process-notes.js';
import { withinMs } from '../util/wait-for.js';
import { answerTo } from './questions.js';
import type { OwnHold } from './questions.js';
import { holderWith, type LockHolder } from '../seam/process-record.js';
import { appNameOf, ownRecord } from './this-process.js';

/** Delay of the first record after the first hold, in ms: a process that ends sooner writes nothing. */
const FIRST_MS = 1_000;
/** Number of periods that a record lasts: others still see it after two failed renewals. */
const PERIODS = 3;
/** Limit for removing the record at the end, in ms. */
const REMOVAL_MS = 200;

export interface OwnProcessHost {
  readonly instanceId: string;
  /** Undefined when holders are unknown: switched off, or a store that keeps no notes. */
  readonly notes: ProcessNotes | undefined;
  readonly appName: string | undefined;
  /** Interval of the renewals of the record, in ms. */
  readonly periodMs: number;
  readonly runtime: Runtime;
  readonly logger: LockLogger;
  /** Returns the holds of this service. */
  holds(): readonly OwnHold[];
}

/**
 * The record of this service in the store, with which others recognize it, and its answers to their questions. It exists
 * while the service uses locks. Its failures concern no lock: the record is written again with the next renewal.
 */
export class OwnProcess {
  /** This service, as others see it. */
  holder: LockHolder;
  private record: string | undefined;
  private timer: unknown;
  private wasUsed = false;
  private isWritten = false;
  private stopListening: (() => void) | undefined;
  private notes: ProcessNotes | undefined;

  constructor(private readonly host: OwnProcessHost) {
    this.notes = host.notes;
    this.holder = holderWith(host.instanceId, ownRecord(host.appName));
  }

  /** The service has a hold, or has waited for one for a second. */
  readonly used = (): void => {
    if (this.wasUsed || !this.notes) return;
    this.wasUsed = true;
    if (this.timer === undefined) this.arm(FIRST_MS);
  };

  /** Removes the record, and answers no more. */
  async stop(): Promise<void> {
    const { host, notes, isWritten } = this;
    this.notes = undefined;
    this.rest();
    if (notes && isWritten) {
      const removal = notes.remove(host.instanceId).catch(() => undefined);
      await withinMs(removal, REMOVAL_MS, host.runtime);
    }
  }

  private arm(ms: number): void {
    this.timer = this.host.runtime.setTimer(() => void this.renew(), ms, true);
  }

  private rest(): void {
    this.host.runtime.clearTimer(this.timer);
    this.timer = undefined;
    this.stopListening?.();
    this.stopListening = undefined;
  }

  /** Writes the record. A service that has used no lock meanwhile lets it expire. */
  private async renew(): Promise<void> {
    const { host } = this;
    if (!this.wasUsed && host.holds().length === 0) return this.rest();
    this.wasUsed = false;
    this.arm(host.periodMs);
    try {
      this.record ??= await this.readRecord();
      const { notes } = this;
      // It may have stopped while the name of the app was read.
      if (!notes || this.timer === undefined) return;
      this.stopListening ??= notes.listen?.(host.instanceId, (text) => void this.answer(text));
      this.isWritten = true;
      await notes.write(host.instanceId, this.record, host.periodMs * PERIODS);
    } catch (failure) {
      if (failure instanceof LockConfigurationError) this.switchOff(failure);
    }
  }

  private async readRecord(): Promise<string> {
    const record = ownRecord(this.host.appName ?? (await appNameOf()));
    this.holder = holderWith(this.host.instanceId, record);
    return JSON.stringify(record);
  }

  private async answer(question: string): Promise<void> {
    try {
      const answer = answerTo(question, this.host.holds(), this.host.runtime.now());
      if (answer) await this.notes?.write(answer.name, answer.text, answer.ttlMs);
    } catch {
      // Any client of the store may send anything. A process without an answer shows less of its holds.
    }
  }

  /** The store does not allow it: locks work, and others see the id of this service only. */
  private switchOff({ message }: LockConfigurationError): void {
    if (!this.notes) return;
    this.notes = undefined;
    this.rest();
    this.host.logger.warn(
      `Other processes cannot see the host of this one: ${message} To do without, set holderInfo: false.`,
    );
  }
}
