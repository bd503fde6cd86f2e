import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../../simulation/engine/random.js';
import { crowdTask, longTask, probe, randomTask } from '../random-task.js';
import type { Load } from '../worker-messages.js';
import { objectTask } from '../random-object-task.js';
import { labNow } from '../../history/lab-clock.js';
import type { Caller } from './caller.js';

/** How often a worker looks how long it takes to get a lock that is free, in ms. */
const PROBE_EVERY_MS = 40;
const THINK_MS = 40;
/** So often many callers come in the same moment: what they ask shares requests. */
const CROWD_EVERY_MS = 150;
/** How many of a worker use semaphores and latches. */
const OBJECT_USERS = 2;

/** Callers that take one lock after the other, from a seed. */
export class LoadRunner {
  private stopped = false;
  private readonly loops: Promise<void>[];

  constructor(
    private readonly caller: Caller,
    private readonly load: Load,
    private readonly process: string,
  ) {
    this.loops = [
      this.probe(),
      this.crowd(),
      ...Array.from({ length: load.callers }, (_, i) => this.call(i)),
      ...Array.from({ length: load.kinds.includes('object') ? OBJECT_USERS : 0 }, (_, i) =>
        this.useObjects(i),
      ),
      ...Array.from({ length: load.keepers }, (_, i) => this.keep(i)),
    ];
  }

  /** Resolves when the last tasks are over. */
  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.loops);
  }

  private async call(number: number): Promise<void> {
    const random = new Random(`${this.load.seed}:${this.process}:${number}`);
    while (!this.stopped) {
      await sleep(random.between(0, THINK_MS));
      if (!this.stopped) await this.caller.perform(randomTask(random, this.load));
    }
  }

  private async useObjects(number: number): Promise<void> {
    const random = new Random(`${this.load.seed}:${this.process}:objects ${number}`);
    while (!this.stopped) {
      await sleep(random.between(0, 2 * THINK_MS));
      if (!this.stopped) await this.caller.use(objectTask(random, labNow()));
    }
  }

  private async keep(number: number): Promise<void> {
    const random = new Random(`${this.load.seed}:${this.process}:keeper ${number}`);
    while (!this.stopped) {
      await sleep(random.between(0, THINK_MS));
      if (!this.stopped) await this.caller.perform(longTask(random, this.load.keptForMs));
    }
  }

  private async crowd(): Promise<void> {
    const random = new Random(`${this.load.seed}:${this.process}:crowd`);
    while (!this.stopped) {
      await Promise.all(
        Array.from({ length: this.load.crowd }, () => this.caller.perform(crowdTask(random, this.load))),
      );
      await sleep(CROWD_EVERY_MS);
    }
  }

  private async probe(): Promise<void> {
    for (let number = 1; !this.stopped; number++) {
      await this.caller.perform(probe(`${this.process}-${number}`));
      await sleep(PROBE_EVERY_MS);
    }
  }
}
