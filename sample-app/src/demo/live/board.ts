import { usesLock, type StrategyName } from '../../flash-sale/strategies/strategy-names.js';
import type { PartMessage } from '../part-process.js';
import type { Part } from '../parts.js';
import { clock, newId } from './ids.js';
import { LaneRecord } from './lane-record.js';
import * as sentences from './sentences.js';
import type { Grant, Words } from './sentences.js';
import type { Controls, LockView, Numbers, SaleView, Sentence, Snapshot } from './snapshot.js';

const MAX_SENTENCES = 8;
/** How long the lanes go on after the end of a sale, in ms. */
const AFTER_MS = 500;

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
  private lanes: LaneRecord[] = [];
  private strategy: StrategyName | undefined;
  private lockedKey: string | undefined;
  /** The last grant, also when its lease is over. */
  private last:
    | (Omit<LockView, 'buyer' | 'grant'> & { readonly at: number; readonly fate?: 'stopped' | 'killed' })
    | undefined;
  /** The tokens of all grants of the sale. */
  private readonly tokens = new Set<number>();
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

  /** Whether the instance that has the lock is dead. */
  get isHolderDead(): boolean {
    return this.lanes.some(({ isKilled }) => isKilled);
  }

  get isWatched(): boolean {
    return this.listeners.size > 0;
  }

  snapshot(): Snapshot {
    const now = clock();
    const seenAt = Math.min(now, this.frozenAt ?? Infinity);
    const { leaseMs, store, frozenAt, strategy, isLast } = this;
    return {
      ...{ now, leaseMs, store, frozenAt, strategy, isLast },
      sentences: this.sentences,
      sales: [...this.sales.values()],
      usesLock: strategy !== undefined && usesLock(strategy),
      lanes: this.lanes.map((lane) => lane.view(seenAt)),
      lock: this.lock,
      controls: this.controls?.(),
    };
  }

  /** The instances of a strategy start. */
  starting(strategy: StrategyName, names: readonly string[]): void {
    this.lanes = names.map((name) => new LaneRecord(name));
    this.newSale(strategy);
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
    this.newSale(strategy);
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
    for (const lane of this.lanes) lane.released(clock());
    this.frozenAt = clock() + AFTER_MS;
    this.say(sentences.over(sale.strategy, numbers, sale.items));
  }

  stopped(index: number, token: number): void {
    this.lanes[index]?.beginSpan('stopped', clock());
    this.meets(index, 'stopped');
    this.say(sentences.stopped(this.nameOf(index), this.grantOf(token)), this.last?.endsAt);
  }

  wentOn(index: number): void {
    this.lanes[index]?.endSpan('stopped', clock());
    const isLate = !this.lanes[index]?.hold;
    if (this.last && !isLate) this.last = { ...this.last, fate: undefined };
    this.say(sentences.wentOn(this.nameOf(index), isLate));
  }

  killed(index: number): void {
    const at = clock();
    const lane = this.lanes[index];
    this.meets(index, 'killed');
    // It may have been killed after its sale, and before its release.
    lane?.holdsOn();
    const waiting = lane?.waiting ?? 0;
    lane?.down(at);
    lane?.beginSpan('killed', at);
    this.say(sentences.killed(this.nameOf(index), waiting), this.last?.endsAt);
  }

  /** An instance replaces a dead one, in its lane. */
  restarted(index: number, part: Part): void {
    this.up(index, part);
    this.say(sentences.restarted(this.nameOf(index)));
  }

  /** The store has said, after `askedAt`, which owner has the lock, and until when. Undefined: it is free. */
  inspected(owner: string | undefined, endsAt: number, askedAt = clock()): void {
    const { last } = this;
    if (last && owner === undefined && last.at < askedAt) this.lanes[last.lane]?.released(clock());
    if (last && this.laneOf(owner) === last.lane) {
      this.last = { ...last, endsAt };
      const [said] = this.sentences;
      if (said?.until !== undefined)
        this.sentences = [{ ...said, until: endsAt }, ...this.sentences.slice(1)];
    }
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

  private newSale(strategy: StrategyName): void {
    this.strategy = strategy;
    this.lockedKey = undefined;
    this.last = undefined;
    this.tokens.clear();
    for (const lane of this.lanes) lane.forget();
    this.frozenAt = undefined;
  }

  /** The lock, while an instance has it. */
  private get lock(): LockView | undefined {
    const { last } = this;
    const hold = last && this.lanes[last.lane]?.hold;
    return hold && { lane: last.lane, buyer: hold.buyer, endsAt: last.endsAt, ...this.grantOf(last.token) };
  }

  /** Returns a grant by its token: also messages that come late do not change the order of tokens. */
  private grantOf(token: number): Grant {
    return { token, grant: [...this.tokens].filter((other) => other < token).length + 1 };
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
        this.acquired(index, message.token, message.at);
        break;
      case 'clicks':
        lane.waiting = message.waiting;
        lane.next = message.next;
        break;
      case 'began':
        if (message.token !== undefined) this.acquired(index, message.token, message.at);
        lane.begin(message.id, message.buyer, message.token, message.at);
        // Messages of two instances may come in the wrong order.
        if (this.last && this.last.lane !== index) lane.released(this.last.at);
        break;
      case 'sold':
        lane.sold(message.token);
        break;
      case 'ended':
        lane.end(message.id, message.at);
        break;
      case 'refused':
        lane.refused(message.token, message.at);
        this.say(
          sentences.refusedWrite(
            lane.name,
            this.grantOf(message.token),
            this.grantOf(Math.max(...this.tokens)),
            this.lanes.flatMap((one) => one.buyersAfter(message.token)),
          ),
        );
        break;
      default:
        return;
    }
    this.changed();
  }

  private acquired(index: number, token: number, at: number): void {
    const before = this.last;
    this.tokens.add(token);
    // A stopped instance that goes on may report what it did before.
    if (before && before.token >= token) return;
    const to = this.lanes[index];
    for (const lane of this.lanes) lane.released(at);
    to?.acquired(token, at, before?.lane === index);
    if (before?.fate && before.lane !== index)
      this.say(
        sentences.passedOn(
          this.nameOf(before.lane),
          this.nameOf(index),
          before.fate === 'killed',
          this.grantOf(token),
        ),
      );
    this.last = { lane: index, token, endsAt: at + this.leaseMs, at };
  }

  /** The store has said that this instance has the lock. */
  private meets(index: number, fate: 'stopped' | 'killed'): void {
    if (this.last) this.last = { ...this.last, lane: index, fate };
  }

  private say(words: Words, until?: number): void {
    const sentence = { ...words, id: newId(), at: clock(), until };
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
