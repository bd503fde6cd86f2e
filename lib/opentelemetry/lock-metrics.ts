import type { Attributes, Counter, Histogram, MeterProvider, UpDownCounter } from '@opentelemetry/api';
import type { LockAcquireMessage, LockHoldMessage, LockStoreMessage } from '../core/context/telemetry.js';
import { isTaken, outcomeOf } from './outcomes.js';

const LABEL = 'redis_lock.label';
const KIND = 'redis_lock.kind';
const OUTCOME = 'redis_lock.outcome';

/** Bounds of the histograms in seconds: 1 ms to 60 s. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface Instruments {
  readonly waitTime: Histogram;
  readonly holdTime: Histogram;
  readonly lost: Counter;
  readonly taken: Counter;
  readonly outages: Counter;
  readonly waiting: UpDownCounter;
  readonly held: UpDownCounter;
}

/** Metrics of one instrumentation. Keys are in none of them. */
export class LockMetrics {
  private startedAt = new WeakMap<object, number>();
  private readonly waiting = new Map<string, number>();
  private readonly held = new Map<string, number>();
  private provider: MeterProvider | undefined;
  private made: Instruments | undefined;

  /** @param providerNow returns the meter provider; an app may register it after the first lock */
  constructor(
    private readonly providerNow: () => MeterProvider,
    private readonly name: string,
    private readonly version: string,
  ) {}

  acquireStarted(message: LockAcquireMessage): void {
    this.begin(message, 'waiting');
  }

  acquireEnded(message: LockAcquireMessage): void {
    const seconds = this.end(message, 'waiting');
    if (seconds === undefined) return;
    const { label, kind } = message;
    const outcome = outcomeOf(message);
    this.instruments.waitTime.record(seconds, { [LABEL]: label, [KIND]: kind, [OUTCOME]: outcome });
    if (isTaken(outcome)) this.instruments.taken.add(1, { [LABEL]: label });
  }

  holdBegan(message: LockHoldMessage): void {
    this.begin(message, 'held');
  }

  holdEnded(message: LockHoldMessage): void {
    const { label, kind, lost } = message;
    if (lost !== undefined) this.instruments.lost.add(1, { [LABEL]: label, 'redis_lock.reason': lost });
    const seconds = this.end(message, 'held');
    if (seconds === undefined) return;
    const outcome = lost === undefined ? 'released' : 'lost';
    this.instruments.holdTime.record(seconds, { [LABEL]: label, [KIND]: kind, [OUTCOME]: outcome });
  }

  store({ up, service }: LockStoreMessage): void {
    if (up) return;
    const attributes: Attributes = service === undefined ? {} : { 'redis_lock.service': service };
    this.instruments.outages.add(1, attributes);
  }

  /** Sets `waiting` and `held` back to zero: the ends of what is in progress are not seen any more. */
  stop(): void {
    this.addAll(-1);
    this.waiting.clear();
    this.held.clear();
    this.startedAt = new WeakMap();
  }

  private begin(message: { readonly label: string }, gauge: 'waiting' | 'held'): void {
    this.startedAt.set(message, performance.now());
    this.count(gauge, message.label, 1);
  }

  /** Returns the time since the beginning in seconds. Undefined, and nothing is counted, if that was not seen. */
  private end(message: { readonly label: string }, gauge: 'waiting' | 'held'): number | undefined {
    const startedAt = this.startedAt.get(message);
    if (startedAt === undefined) return undefined;
    this.startedAt.delete(message);
    this.count(gauge, message.label, -1);
    return (performance.now() - startedAt) / 1_000;
  }

  private count(gauge: 'waiting' | 'held', label: string, change: 1 | -1): void {
    // Before the count changes: new instruments begin with what was counted so far.
    this.instruments[gauge].add(change, { [LABEL]: label });
    const now = (this[gauge].get(label) ?? 0) + change;
    if (now === 0) this[gauge].delete(label);
    else this[gauge].set(label, now);
  }

  private get instruments(): Instruments {
    const provider = this.providerNow();
    if (this.made && provider === this.provider) return this.made;
    this.addAll(-1);
    this.provider = provider;
    this.made = instrumentsOf(provider, this.name, this.version);
    this.addAll(1);
    return this.made;
  }

  private addAll(sign: 1 | -1): void {
    for (const gauge of ['waiting', 'held'] as const) {
      for (const [label, count] of this[gauge]) this.made?.[gauge].add(sign * count, { [LABEL]: label });
    }
  }
}

const instrumentsOf = (provider: MeterProvider, name: string, version: string): Instruments => {
  const meter = provider.getMeter(name, version);
  const seconds = { unit: 's', advice: { explicitBucketBoundaries: BUCKETS } };
  return {
    waitTime: meter.createHistogram('redis_lock.wait_time', {
      ...seconds,
      description: 'Time from the call to the lock or to the error.',
    }),
    holdTime: meter.createHistogram('redis_lock.hold_time', {
      ...seconds,
      description: 'Time from the grant to the release or the loss.',
    }),
    lost: meter.createCounter('redis_lock.lost', {
      unit: '{lock}',
      description: 'Locks that ended before their holder released them.',
    }),
    taken: meter.createCounter('redis_lock.taken', {
      unit: '{call}',
      description: 'Calls that did not get the lock because it was taken.',
    }),
    outages: meter.createCounter('redis_lock.store.outages', {
      unit: '{outage}',
      description: 'Outages of the store.',
    }),
    waiting: meter.createUpDownCounter('redis_lock.waiting', {
      unit: '{call}',
      description: 'Calls that wait for a lock now.',
    }),
    held: meter.createUpDownCounter('redis_lock.held', {
      unit: '{lock}',
      description: 'Locks that are held now.',
    }),
  };
};
