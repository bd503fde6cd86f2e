import { setTimeout as sleep } from 'node:timers/promises';
import { hashSlot } from '../../../lib/stores/redis/hash-slot.js';
import { until } from '../../support/async.js';
import { labNow } from '../history/lab-clock.js';
import type { Recorder } from '../workload/worker/recorder.js';
import type { RunningApp } from '../workload/worker/start-app.js';
import type { AppPlan, Slots } from './app-messages.js';
import type { BareConnections } from './bare-connection.js';

const REQUEST_EVERY_MS = 40;
const LEASE_MS = 1_000;
/** How long the servers may not work before a fault, because of another one, in ms. */
const PREPARED_MS = 10_000;

/** What an app needs beside its servers. */
export interface Around {
  readonly recorder: Recorder;
  readonly keyPrefix: string;
  readonly round: string;
  readonly bare: BareConnections;
  served(name: string, at: number): void;
  closed(): void;
}

/** An app that acquires one free key after the other, each once. */
export class RequestingApp {
  private keys = 0;
  private requesting: Promise<void> | undefined;
  private accepting: readonly number[] | undefined;
  private closed = false;

  constructor(
    readonly plan: AppPlan,
    private readonly running: RunningApp,
    private readonly around: Around,
    private readonly slots: Slots | undefined,
  ) {}

  /** Brings the app into the state that it has before the fault. */
  async prepare(elsewhere: Slots | undefined): Promise<void> {
    const { connection } = this.plan;
    const slots = connection === 'no connection' ? elsewhere : this.slots;
    if (connection !== 'no connection' || elsewhere) {
      await until(() => this.request(slots), {
        timeoutMs: PREPARED_MS,
        what: `${this.plan.name} has a lock`,
      });
    }
    if (connection === 'busy') this.begin();
  }

  /** The fault begins. */
  fault(): void {
    if (this.plan.requestsMeanwhile) this.begin();
  }

  acceptingAt(ports: readonly number[]): void {
    this.accepting = ports;
    this.begin();
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.requesting;
    await this.running.app.close();
    this.around.closed();
  }

  private begin(): void {
    this.requesting ??= this.requestRepeatedly();
  }

  private async requestRepeatedly(): Promise<void> {
    while (!this.closed) {
      await this.request(this.slots);
      await sleep(REQUEST_EVERY_MS);
    }
  }

  /** Whether the app acquired a key. */
  private async request(slots: Slots | undefined): Promise<boolean> {
    const { locks } = this.running;
    const { recorder, keyPrefix } = this.around;
    const name = this.nextName(slots);
    const about = { keys: [keyPrefix + name], waitMs: 0, style: 'tryAcquire', leaseMs: LEASE_MS };
    const call = recorder.call(about);
    try {
      const lease = await locks.tryAcquire(name, { leaseMs: LEASE_MS });
      if (!lease) {
        recorder.refused(call);
        return false;
      }
      const open = recorder.granted(call, lease, []);
      await this.look(call, keyPrefix + name);
      recorder.ended(open);
      await lease.release().then(
        (result) => recorder.returned(open, 'release', { result }),
        (error: unknown) => recorder.returned(open, 'release', { error }),
      );
      return true;
    } catch (error) {
      recorder.refused(call, error);
      return false;
    }
  }

  /** Writes down that the app is served, if its lock is on the servers that accept writes. */
  private async look(call: string, key: string): Promise<void> {
    const { accepting } = this;
    if (!accepting) return;
    const { recorder, bare, served } = this.around;
    const at = labNow();
    const found = await Promise.all(
      accepting.map((port) =>
        bare
          .to(port)
          .exists(key)
          .catch(() => 0),
      ),
    );
    if (found.includes(0) || accepting !== this.accepting) return;
    recorder.write({ type: 'served', call });
    served(this.plan.name, at);
  }

  private nextName(slots: Slots | undefined): string {
    const { round, keyPrefix } = this.around;
    for (;;) {
      const name = `${round}:${this.plan.name}-${++this.keys}`;
      const slot = hashSlot(keyPrefix + name);
      if (!slots || (slot >= slots.from && slot < slots.to)) return name;
    }
  }
}
