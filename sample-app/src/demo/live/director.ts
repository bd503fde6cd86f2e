import { setTimeout as sleep } from 'node:timers/promises';
import type { StrategyName } from '../../flash-sale/strategies/strategy-names.js';
import { usesLock } from '../../flash-sale/strategies/strategy-names.js';
import { clicksOf, sendCrowd } from '../crowd.js';
import { stopHolder } from '../faults/stop-holder.js';
import { letWrite, Writers, type Writer } from '../faults/writers.js';
import { ActionRefused, type ActionName, type Actions } from '../page/actions.js';
import type { Part } from '../parts.js';
import { WATCHDOG_MS, type Stage } from '../stage.js';
import type { Board } from './board.js';
import type { Controls } from './snapshot.js';
import { watchSale } from './watch-sale.js';

/** How long a button waits for a holder of the lock, in ms. */
const PATIENCE_MS = 4_000;
/** How long the red time of a dead instance may last, in ms: its lease, and a renewal that was under way. */
const RESTART_AFTER_MS = WATCHDOG_MS + 1_000;

export interface DirectorOptions {
  readonly stage: Stage;
  readonly board: Board;
  readonly items: number;
  readonly buyers: number;
  readonly instances: number;
  /** Signal that ends everything. */
  readonly signal: AbortSignal;
}

/** Runs sales for the page, and does what its buttons say. */
export class Director implements Actions {
  private parts: Part[] = [];
  private strategy: StrategyName = 'locked';
  private sales = 0;
  private writers = new Writers();
  private stopped: Writer | undefined;
  private isBusy = false;
  private isOpen = false;
  private background: Promise<void> = Promise.resolve();
  /** Ends the restarts that still wait; a new sale starts all instances. */
  private restarts = new AbortController();
  private readonly restarting = new Set<Promise<void>>();
  private fail: (error: unknown) => void = () => undefined;
  /** Rejects when something fails that no button waits for. */
  readonly failed = new Promise<never>((_resolve, reject) => (this.fail = reject));

  constructor(private readonly options: DirectorOptions) {
    options.board.controls = () => this.controls();
  }

  /** Starts the instances for a strategy, in place of those that run. Resolves with their addresses. */
  async start(strategy: StrategyName): Promise<string[]> {
    const { stage, board, instances } = this.options;
    const before = this.parts;
    const names = stage.instanceNames(instances);
    board.starting(strategy, names);
    this.strategy = strategy;
    this.stopped = undefined;
    this.writers = new Writers();
    this.restarts.abort();
    this.restarts = new AbortController();
    await Promise.all([...before.map((part) => part.stop()), ...this.restarting]);
    const ports = names.map((_, index) => portOf(before[index]));
    this.parts = await Promise.all(
      names.map((name, index) => stage.startInstance(name, strategy, true, ports[index])),
    );
    this.parts.forEach((part, index) => {
      this.writers.add(part);
      board.up(index, part);
    });
    return this.parts.map(({ url }) => url);
  }

  async act(action: ActionName, strategy: StrategyName): Promise<void> {
    // One at a time: a second one would not find what the first one has left.
    if (this.isBusy) throw new ActionRefused('The last button is still at work.');
    this.isBusy = true;
    try {
      if (action === 'open') await this.open(strategy);
      else if (action === 'go-on') this.goOn();
      else if (action === 'stop') await this.stop();
      else await this.kill();
    } finally {
      this.isBusy = false;
    }
  }

  /** Waits for what still runs after the signal. */
  async end(): Promise<void> {
    if (this.stopped) this.goOn();
    await this.background;
  }

  private controls(): Controls {
    const hasHolder = this.isOpen && usesLock(this.strategy) && !this.options.board.isHolderDead;
    return {
      kill: hasHolder,
      stop: hasHolder && !this.stopped,
      goOn: this.stopped !== undefined,
      open: !this.isOpen && !this.isBusy,
    };
  }

  /** Opens a sale, and sends the crowd. It ends in the background. */
  private async open(strategy: StrategyName): Promise<void> {
    if (this.isOpen) throw new ActionRefused('The last sale is still open.');
    const { stage, board, items, buyers } = this.options;
    this.isOpen = true;
    try {
      if (strategy !== this.strategy || this.parts.some(({ alive }) => !alive)) await this.start(strategy);
      this.sales += 1;
      const sku = `sneaker-${strategy}-${this.sales}`;
      await stage.sales.putOnSale(sku, items);
      board.open({ strategy, items, clicks: clicksOf(buyers).length });
      this.background = this.run(sku).catch(this.fail);
    } catch (error) {
      this.isOpen = false;
      throw error;
    }
  }

  private async run(sku: string): Promise<void> {
    const { stage, board, items, buyers, signal } = this.options;
    const over = new AbortController();
    let answered = 0;
    const urls = this.parts.map(({ url }) => url);
    const onAnswer = () => void (answered += 1);
    const crowd = sendCrowd({ sku, buyers, urls, signal, onAnswer }).finally(() => over.abort());
    const watch = { sku, items, answered: () => answered, signal: over.signal };
    try {
      await Promise.all([crowd, watchSale(stage, board, watch)]);
      // An instance that stands still has a write to come.
      while (this.stopped && !signal.aborted) await sleep(WATCHDOG_MS / 10, undefined, { signal });
      board.over(await stage.sales.facts(sku, items));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.isOpen = false;
    }
  }

  private async stop(): Promise<void> {
    if (this.stopped) throw new ActionRefused('One instance stands still already. Let it go on first.');
    const { board } = this.options;
    const writer = await this.patient((signal) => this.writers.catch(() => true, signal));
    writer.instance.kill('SIGSTOP');
    this.stopped = writer;
    board.stopped(this.parts.indexOf(writer.instance), writer.token);
  }

  private goOn(): void {
    if (!this.stopped) throw new ActionRefused('No instance stands still.');
    const { instance } = this.stopped;
    instance.kill('SIGCONT');
    this.options.board.wentOn(this.parts.indexOf(instance));
    letWrite(this.stopped);
    this.stopped = undefined;
  }

  private async kill(): Promise<void> {
    const { stage, board } = this.options;
    const owner = async (key: string) => (await stage.locks.hold(key))?.owner;
    const instance =
      (await this.stoppedHolder()) ??
      (await this.patient((signal) => stopHolder({ instances: this.parts, owner, signal }))).instance;
    const index = this.parts.indexOf(instance);
    if (this.stopped?.instance === instance) this.stopped = undefined;
    instance.kill('SIGKILL');
    board.killed(index);
    const restart = this.replace(index, instance).catch(this.fail);
    this.restarting.add(restart);
    void restart.finally(() => this.restarting.delete(restart));
  }

  /** Resolves with the instance that stands still, if it still has the lock. */
  private async stoppedHolder(): Promise<Part | undefined> {
    const { stage, board } = this.options;
    const { stopped } = this;
    if (!stopped || board.key === undefined) return undefined;
    const hold = await stage.locks.hold(board.key);
    const isHolder = hold && board.laneOf(hold.owner) === this.parts.indexOf(stopped.instance);
    return isHolder ? stopped.instance : undefined;
  }

  /** Starts an instance in place of a dead one, when the lock is free of it. */
  private async replace(index: number, dead: Part): Promise<void> {
    const { stage, board } = this.options;
    const { strategy } = this;
    const signal = AbortSignal.any([this.options.signal, this.restarts.signal]);
    try {
      await sleep(RESTART_AFTER_MS, undefined, { signal });
      const part = await stage.startInstance(dead.name, strategy, true, portOf(dead));
      // Meanwhile another sale may have begun, with instances of its own.
      if (signal.aborted) return await part.stop();
      this.parts[index] = part;
      this.writers.add(part);
      board.restarted(index, part);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  private async patient<T>(find: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([this.options.signal, AbortSignal.timeout(PATIENCE_MS)]);
    try {
      return await find(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new ActionRefused('No instance took the lock meanwhile: is the sale over?');
    }
  }
}

const portOf = (part: Part | undefined): number => (part ? Number(new URL(part.url).port) : 0);
