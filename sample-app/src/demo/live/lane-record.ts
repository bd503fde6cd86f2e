import { newId } from './ids.js';
import type { Bar, Cross, Lane, LaneState, Span } from './snapshot.js';

type Open<T> = { -readonly [K in keyof T]: T[K] };

/** How far back the page can look, in ms. */
const MEMORY_MS = 16_000;
/** Maximum number of bars of a lane. */
const MAX_BARS = 250;
/** Holds that follow each other this closely, and are this short, become one bar. */
const MAX_GAP_MS = 30;
const SHORT_MS = 60;

interface Click {
  readonly token: number | undefined;
  readonly bar: Open<Bar>;
}

/** What one instance did in the last seconds. */
export class LaneRecord {
  waiting = 0;
  next: readonly string[] = [];
  /** Prefix of its owner names in the store; undefined before its first lock. */
  owners: string | undefined;
  private isUp = false;
  private readonly working = new Map<number, Click>();
  private bars: Open<Bar>[] = [];
  private spans: Open<Span>[] = [];
  private crosses: Cross[] = [];

  constructor(readonly name: string) {}

  up(): void {
    this.isUp = true;
  }

  /** Its process is gone. It may still have the lock. */
  down(at: number): void {
    this.isUp = false;
    this.waiting = 0;
    this.next = [];
    this.working.clear();
    this.endSpan('stopped', at);
  }

  get isStopped(): boolean {
    return this.openSpan('stopped') !== undefined;
  }

  /** Whether its process is dead and its lock is not yet free. */
  get isKilled(): boolean {
    return this.openSpan('killed') !== undefined;
  }

  /** The block of the lock that it has now. */
  get hold(): Bar | undefined {
    const last = this.bars.at(-1);
    return last?.token !== undefined && last.to === undefined ? last : undefined;
  }

  /** It has acquired the lock; `again` if it was the last holder, too. */
  acquired(token: number, at: number, again: boolean): void {
    const last = this.bars.at(-1);
    const joins = again && last?.to !== undefined && at - last.to <= MAX_GAP_MS;
    if (joins && (last.to! - last.from) / last.buyers <= SHORT_MS)
      Object.assign(last, { to: undefined, buyer: '', token, buyers: last.buyers + 1 });
    else this.bars.push({ id: newId(), from: at, buyer: '', buyers: 1, sold: 0, token });
  }

  /** It has the lock still, whatever it has reported. */
  holdsOn(): void {
    const last = this.bars.at(-1);
    if (last) last.to = undefined;
  }

  /** It begins to sell to a buyer, under its last lock if there is one. */
  begin(id: number, buyer: string, token: number | undefined, at: number): void {
    let bar = this.bars.at(-1);
    if (!bar || token === undefined || bar.token !== token)
      this.bars.push((bar = { id: newId(), from: at, buyer, buyers: 1, sold: 0, token }));
    bar.buyer = buyer;
    this.working.set(id, { token, bar });
  }

  end(id: number, at: number): void {
    const click = this.working.get(id);
    this.working.delete(id);
    if (click && click.bar.token === click.token) click.bar.to = Math.min(click.bar.to ?? at, at);
  }

  sold(token: number): void {
    const bar = this.bars.findLast((one) => one.token === token);
    if (bar) bar.sold += 1;
  }

  /** It has the lock no longer: its lease has ended, or it has released it. It may work on without knowing it. */
  released(at: number): void {
    const last = this.bars.at(-1);
    if (this.hold) last!.to = at;
    this.endSpan('killed', at);
  }

  beginSpan(kind: Span['kind'], at: number): void {
    this.spans.push({ id: newId(), kind, from: at });
  }

  endSpan(kind: Span['kind'], at: number): void {
    const span = this.openSpan(kind);
    if (span) span.to = at;
  }

  /** Returns the buyers to which it sold under later locks. */
  buyersAfter(token: number): string[] {
    return this.bars
      .filter((bar) => bar.sold > 0 && bar.token !== undefined && bar.token > token)
      .map(({ buyer }) => buyer);
  }

  refused(token: number, at: number): void {
    this.crosses.push({ id: newId(), at, token });
  }

  /** Another sale begins. */
  forget(): void {
    [this.bars, this.spans, this.crosses] = [[], [], []];
  }

  view(now: number): Lane {
    const from = now - MEMORY_MS;
    this.bars = this.bars.filter(({ to = now }) => to >= from).slice(-MAX_BARS);
    this.spans = this.spans.filter(({ to = now }) => to >= from);
    this.crosses = this.crosses.filter(({ at }) => at >= from);
    const { name, waiting, next, working, bars, spans, crosses } = this;
    return { name, state: this.state, waiting, next, working: working.size, bars, spans, crosses };
  }

  private get state(): LaneState {
    if (this.isKilled) return 'killed';
    if (!this.isUp) return 'starting';
    if (this.isStopped) return 'stopped';
    if (this.hold) return 'holds';
    return this.waiting > 0 ? 'waits' : 'idle';
  }

  private openSpan(kind: Span['kind']): Open<Span> | undefined {
    return this.spans.find((span) => span.kind === kind && span.to === undefined);
  }
}
