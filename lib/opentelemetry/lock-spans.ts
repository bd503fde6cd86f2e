import {
  context,
  isSpanContextValid,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import type { LockAcquireMessage, LockSectionMessage } from '../core/context/telemetry.js';
import type { Lease } from '../core/lease/lease.js';
import { activate } from './active-context.js';
import { isDefect, outcomeOf } from './outcomes.js';

const LABEL = 'redis_lock.label';
const KIND = 'redis_lock.kind';
const OUTCOME = 'redis_lock.outcome';
const TOKEN = 'redis_lock.fencing_token';
const KEYS = 'redis_lock.keys';

/** Spans of the calls that acquire and of the sections. The spans of one instrumentation. */
export class LockSpans {
  /**
   * Sections that have not returned their promise yet: at most as many as are nested in each other. All instrumentations
   * share it, since what they made active has to be undone in the reverse order.
   */
  private static readonly active = new Map<object, (() => void)[]>();
  private readonly open = new WeakMap<object, Span>();

  /** @param withKeys returns true when spans have the keys */
  constructor(
    private readonly tracer: () => Tracer,
    private readonly withKeys: () => boolean,
  ) {}

  acquireStarted(message: LockAcquireMessage): void {
    this.open.set(message, this.start(`lock.acquire ${message.label}`, message));
  }

  acquireEnded(message: LockAcquireMessage): void {
    const span = this.take(message);
    if (!span) return;
    const outcome = outcomeOf(message);
    const token = tokenOf(message.result);
    end(span, outcome, isDefect(outcome), token);
  }

  /** Starts the span of a section, and makes it the parent of the work inside. */
  sectionStarted(message: LockSectionMessage): void {
    const span = this.start(`lock.hold ${message.label}`, message);
    this.open.set(message, span);
    const token = tokenOf(message.lease);
    if (token !== undefined) span.setAttribute(TOKEN, token);
    // Without an SDK there is nothing to be a parent.
    if (!isSpanContextValid(span.spanContext())) return;
    const undo = activate(trace.setSpan(context.active(), span));
    if (!undo) return;
    const { active } = LockSpans;
    active.set(message, [undo, ...(active.get(message) ?? [])]);
  }

  /** The section has returned its promise: what the caller does next is not inside. */
  sectionReturned(message: object): void {
    const undos = LockSpans.active.get(message);
    LockSpans.active.delete(message);
    undos?.forEach((undo) => undo());
  }

  sectionEnded(message: LockSectionMessage): void {
    const span = this.take(message);
    if (!span) return;
    const { lost } = message.lease;
    end(span, lost ? 'lost' : 'released', lost);
  }

  /** Undoes what open sections made active: their ends are not seen any more. */
  stop(): void {
    const { active } = LockSpans;
    for (const message of [...active.keys()].reverse())
      if (this.open.has(message)) this.sectionReturned(message);
  }

  private start(name: string, message: LockAcquireMessage | LockSectionMessage): Span {
    const attributes: Attributes = { [LABEL]: message.label, [KIND]: message.kind };
    if (this.withKeys()) attributes[KEYS] = [...message.keys];
    return this.tracer().startSpan(name, { kind: SpanKind.INTERNAL, attributes });
  }

  private take(message: object): Span | undefined {
    const span = this.open.get(message);
    this.open.delete(message);
    return span;
  }
}

/** Returns the fencing token of a lease on one key, if it has one. */
const tokenOf = (lease: Lease | undefined): number | undefined =>
  lease?.parts.length === 1 ? lease.parts[0]!.hold.token : undefined;

// No recordException: the text of an error has the key.
const end = (span: Span, outcome: string, isError: boolean, token?: number): void => {
  span.setAttribute(OUTCOME, outcome);
  if (token !== undefined) span.setAttribute(TOKEN, token);
  if (isError)
    span.setStatus({ code: SpanStatusCode.ERROR, message: outcome === 'lost' ? 'LOCK_LOST' : outcome });
  span.end();
};
