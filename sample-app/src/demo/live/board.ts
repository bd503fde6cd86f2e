import { usesLock, type StrategyName } from '../../flash-sale/strategies/strategy-names.js';
import type { PartMessage } from '../part-process.js';
import type { Part } from '../parts.js';
import { clock, newId } from './ids.js';
import { LaneRecord } from './lane-record.js';
import * as sentences from './sentences.js';
import type { Words } from './sentences.js';
import type { Controls, HandOver, LockView, Numbers, SaleView, Sentence, Snapshot } from './snapshot.js';

const MAX_SENTENCES = 8;
const HAND_OVERS_MS = 16_000;
/** How long the lanes go on after the end of a sale, in ms. */
const AFTER_MS = 500;
/** How old a fact of the store may be, in ms, before a message of an instance counts for more. */
const FRESH_MS = 150;

const NO_NUMBERS: Numbers = {
  ...{ sold: 0, oversold: 0, doubleOrders: 0, chargedTwice: 0 },
  ...{ staleWritesRefused: 0, longestOutageMs: 0 },
};

export interface SaleStart {
  readonly strategy: StrategyName;
  readonly items: number;
  readonly clicks: number;
}

/** What the page shows: it is told what happens, and tells its listeners that something has changed. */
export class Board {
  private readonly listeners = new Set<() => void>();
  private readonly sales = new Map<StrategyName, SaleView>();
  private sentences: Sentence[] = [];
  private handOvers: HandOver[] = [];
  private lanes: LaneRecord[] = [];
  private strategy: StrategyName | undefined;
  private lockedKey: string | undefined;
  private lock: (LockView & { readonly at: number; readonly fate?: 'stopped' | 'killed' }) | undefined;
  private isLast = false;
  private frozenAt: number | undefined;
  /** What the buttons may do; undefined without buttons. */
  controls: (() => Controls) | undefined;

  constructor(
    private readonly leaseMs: number,
    private readonly store: string,
  ) {
    this.say(sentences.setUp());
  }

  /** Registers a listener; returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Key of the lock, once an instance has reported it. */
  get key(): string | undefined {
    return this.lockedKey;
  }

  get isWatched(): boolean {
    return this.listeners.size > 0;
  }

  snapshot(): Snapshot {
    const now = clock();
    const seenAt = Math.min(now, this.frozenAt ?? Infinity);
    this.handOvers = this.handOvers.filter(({ at }) => at >= seenAt - HAND_OVERS_MS);
    const { leaseMs, store, handOvers, frozenAt, strategy, isLast } = this;
    return {
      ...{ now, leaseMs, store, handOvers, frozenAt, strategy, isLast },
      sentences: this.sentences,
      sales: [...this.sales.values()],
      usesLock: strategy !== undefined && usesLock(strategy),
      lanes: this.lanes.map((lane) => lane.view(seenAt)),
      lock: this.lock && { ...this.lock },
      controls: this.controls?.(),
    };
  }

  /** The instances of a strategy start. */
  starting(strategy: StrategyName, names: readonly string[]): void {
    this.strategy = strategy;
    this.lanes = names.map((name) => new LaneRecord(name));
    this.handOvers = [];
    this.lock = undefined;
    this.lockedKey = undefined;
    this.frozenAt = undefined;
    this.say(sentences.starting(strategy));
  }

  /** An instance is up. Its messages are shown from now on. */
  up(index: number, part: Part): void {
    this.lanes[index]?.up();
    const lane = this.lanes[index];
    // Of an earlier sale, or of a process that was replaced: its lane is not shown any more.
    part.onMessage((message) => {
      if (lane && this.lanes[index] === lane) this.heard(lane, index, message);
    });
    this.changed();
  }

  /** A sale opens; the crowd comes. */
  open({ strategy, items, clicks }: SaleStart): void {
    this.strategy = strategy;
    this.lockedKey = undefined;
    this.frozenAt = undefined;
    this.sales.delete(strategy);
    this.sales.set(strategy, { ...NO_NUMBERS, strategy, items, state: 'open', clicks, answered: 0 });
    this.say(clicks > 0 ? sentences.opened(strategy) : sentences.waitsForCurl());
  }

  counted(numbers: Numbers, answered: number): void {
    const sale = this.sale;
    if (!sale) return;
    this.sales.set(sale.strategy, { ...sale, ...numbersOf(numbers), answered });
    if (numbers.oversold > 0 && sale.state === 'open')
      this.sayAgain(sentences.soldTooMany(numbers, sale.items));
    this.changed();
  }

  over(numbers: Numbers): void {
    const sale = this.sale;
    if (!sale) return;
    this.sales.set(sale.strategy, { ...sale, ...numbersOf(numbers), state: 'over', answered: sale.clicks });
    this.lock = undefined;
    this.frozenAt = clock() + AFTER_MS;
    this.say(sentences.over(sale.strategy, numbers, sale.items));
  }

  stopped(index: number, token: number): void {
    this.lanes[index]?.beginSpan('stopped', clock());
    this.meets(index, 'stopped');
    this.say(sentences.stopped(this.nameOf(index), token), this.lock?.endsAt);
  }

  wentOn(index: number): void {
    this.lanes[index]?.endSpan('stopped', clock());
    const isLate = this.lock?.lane !== index;
    if (this.lock && !isLate) this.lock = { ...this.lock, fate: undefined };
    this.say(sentences.wentOn(this.nameOf(index), isLate));
  }

  killed(index: number): void {
    const at = clock();
    const lane = this.lanes[index];
    this.meets(index, 'killed');
    // It may have been killed before it could say to whom it sells.
    if (lane && !lane.isWorking && this.lock) lane.begin(0, '', this.lock.token, this.lock.at);
    lane?.down(at);
    lane?.beginSpan('killed', at);
    this.say(sentences.killed(this.nameOf(index)), this.lock?.endsAt);
  }

  /** An instance replaces a dead one, in its lane. */
  restarted(index: number, part: Part): void {
    this.up(index, part);
    this.say(sentences.restarted(this.nameOf(index)));
  }

  /** The store says which owner has the lock, and until when. Undefined: it is free. */
  inspected(owner: string | undefined, endsAt: number): void {
    const { lock } = this;
    const index = this.laneOf(owner);
    if (lock && owner === undefined && clock() - lock.at > FRESH_MS) this.lockEnded();
    if (lock && index === lock.lane) this.lock = { ...lock, endsAt };
    const last = this.sentences[0];
    if (lock && last?.until !== undefined && last.until !== endsAt && index === lock.lane)
      this.sentences = [{ ...last, until: endsAt }, ...this.sentences.slice(1)];
    this.changed();
  }

  /** Returns the index of the instance to which an owner in the store belongs; -1 for another one. */
  laneOf(owner: string | undefined): number {
    return this.lanes.findIndex(({ owners }) => owners !== undefined && owner?.startsWith(owners));
  }

  /** The demo is over: no more changes. */
  end(): void {
    this.isLast = true;
    this.changed();
  }

  private get sale(): SaleView | undefined {
    return this.strategy && this.sales.get(this.strategy);
  }

  private nameOf(index: number): string {
    return this.lanes[index]?.name ?? '';
  }

  private heard(lane: LaneRecord, index: number, message: PartMessage): void {
    switch (message.type) {
      case 'acquired':
        lane.owners = message.owner;
        this.lockedKey = message.key;
        // Its buyer follows.
        this.acquired(index, '', message.token, clock());
        break;
      case 'clicks':
        lane.waiting = message.waiting;
        lane.next = message.next;
        break;
      case 'began':
        lane.begin(message.id, message.buyer, message.token, message.at);
        if (message.token !== undefined) this.acquired(index, message.buyer, message.token, message.at);
        break;
      case 'ended':
        lane.end(message.id, message.at);
        break;
      case 'refused':
        lane.refused(message.token, message.at);
        this.say(sentences.refusedWrite(lane.name, message.token));
        break;
      default:
        return;
    }
    this.changed();
  }

  private acquired(index: number, buyer: string, token: number, at: number): void {
    const before = this.lock;
    // A stopped instance that goes on may report what it did before.
    if (before && before.token > token) return;
    if (before?.token === token) {
      this.lock = { ...before, buyer };
      return;
    }
    if (before && before.lane !== index) {
      const lane = this.lanes[before.lane];
      this.handOvers.push({ id: newId(), at, from: before.lane, to: index });
      if (lane && before.fate) {
        this.say(sentences.passedOn(lane.name, this.nameOf(index), before.fate === 'killed', token));
        lane.leaseEnded(at);
      }
      lane?.released();
    }
    this.lanes[index]?.holds();
    this.lock = { lane: index, buyer, token, endsAt: at + this.leaseMs, at };
  }

  private lockEnded(): void {
    if (!this.lock) return;
    const lane = this.lanes[this.lock.lane];
    // The last holder is remembered: the hand-over to the next one is told with its name.
    if (this.lock.fate) lane?.leaseEnded(clock());
    else {
      lane?.released();
      this.lock = undefined;
    }
  }

  /** The store has said that this instance has the lock. */
  private meets(index: number, fate: 'stopped' | 'killed'): void {
    const { lock } = this;
    if (lock) this.lock = { ...lock, lane: index, fate };
  }

  private say({ tone, text }: Words, until?: number): void {
    const sentence = { id: newId(), at: clock(), tone, text, until };
    this.sentences = [sentence, ...this.sentences].slice(0, MAX_SENTENCES);
    this.changed();
  }

  /** Says a sentence that replaces the last one, if that had the same meaning with other numbers. */
  private sayAgain(words: Words): void {
    const [last] = this.sentences;
    const shape = (text: string) => text.replaceAll(/\d+/g, '#');
    if (!last || shape(last.text) !== shape(words.text)) return this.say(words);
    this.sentences = [{ ...last, ...words }, ...this.sentences.slice(1)];
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

const numbersOf = (numbers: Numbers): Numbers => {
  const { sold, oversold, doubleOrders, chargedTwice, staleWritesRefused, longestOutageMs } = numbers;
  return { sold, oversold, doubleOrders, chargedTwice, staleWritesRefused, longestOutageMs };
};
