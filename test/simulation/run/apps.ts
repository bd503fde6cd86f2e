import { EventEmitter } from 'node:events';
import type { App } from '../plan/plan.js';
import type { SimProcess } from '../engine/sim-process.js';

type Task = () => Promise<void>;

/** How many tasks fill a batch. */
const BATCH = 2;
/** A batch that does not fill is run after this many ms, and so are listeners without an event. */
const AT_LAST_MS = 20;

/** Runs a task when something else of the process says so, in the asynchronous context of that. */
class Deferring {
  private readonly emitter = new EventEmitter();
  private timer: unknown;

  constructor(private readonly process: SimProcess) {}

  get waiting(): number {
    return this.emitter.listenerCount('run');
  }

  add(task: Task): Promise<void> {
    this.timer ??= this.process.setTimer(() => this.runAll(), AT_LAST_MS);
    return new Promise((resolve, reject) => {
      this.emitter.once('run', () => void task().then(resolve, reject));
    });
  }

  runAll(): void {
    this.process.clearTimer(this.timer);
    this.timer = undefined;
    this.emitter.emit('run');
  }
}

/**
 * Queues, batches and emitters that apps have between their callers and the lock. None of them keeps the asynchronous context of the caller: a task runs in the
 * context of another one, which may be inside a section.
 */
export class Apps {
  private readonly queue: Task[] = [];
  private isBusy = false;
  private readonly batch: Deferring;
  private readonly listeners: Deferring;

  constructor(process: SimProcess) {
    this.batch = new Deferring(process);
    this.listeners = new Deferring(process);
  }

  run(app: App, task: Task): Promise<void> {
    if (app === 'queue') return this.inTurn(task);
    if (app === 'batch') return this.inBatch(task);
    return this.notified(task);
  }

  /** A serial queue: the task that has ended starts the next one. */
  private inTurn(task: Task): Promise<void> {
    return new Promise((resolve, reject) => {
      this.queue.push(async () => {
        await task().then(resolve, reject);
        this.next();
      });
      if (!this.isBusy) this.next();
    });
  }

  private next(): void {
    const task = this.queue.shift();
    this.isBusy = task !== undefined;
    void task?.();
  }

  /** The caller that fills the batch runs all of it. */
  private inBatch(task: Task): Promise<void> {
    const done = this.batch.add(task);
    if (this.batch.waiting === BATCH) this.batch.runAll();
    return done;
  }

  /** An event runs what has listened until now; each caller notifies those before it, and listens. */
  private notified(task: Task): Promise<void> {
    if (this.listeners.waiting > 0) this.listeners.runAll();
    return this.listeners.add(task);
  }
}
