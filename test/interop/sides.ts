import { RedisServer } from '../support/redis-server.js';
import { TestWorker } from '../support/worker.js';
import type { Contend, ContenderSetup, FromContender, ToContender } from './contender.worker.js';
import { Redisson, type Had, type RedissonOptions } from '../support/redisson/redisson.js';

const CONTENDER = new URL('./contender.worker.ts', import.meta.url);
const BOOT_MS = 25_000;
const COMPLAINT = / (WARN|ERROR) /;

export type Contender = TestWorker<ToContender, FromContender>;

/** One Redis server, and processes of Java and of Node around it. What was started through it ends with it. A warning or an error in the log of a Redisson fails that end. */
export class Sides implements AsyncDisposable {
  private readonly started: AsyncDisposable[] = [];
  private readonly redissons: Redisson[] = [];

  private constructor(readonly server: RedisServer) {}

  static async start(): Promise<Sides> {
    const server = await RedisServer.start();
    const sides = new Sides(server);
    sides.started.push(server);
    return sides;
  }

  async java(options?: RedissonOptions): Promise<Redisson> {
    const java = await Redisson.start(this.server.url, options);
    this.started.push(java);
    this.redissons.push(java);
    return java;
  }

  async node(options?: ContenderSetup['options']): Promise<Contender> {
    const setup: ContenderSetup = { redis: this.server.url, options };
    const worker = TestWorker.start<ToContender, FromContender>(CONTENDER, { args: [JSON.stringify(setup)] });
    this.started.push(worker);
    await worker.next('ready', { timeoutMs: BOOT_MS });
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.started.splice(0).reverse()) await one[Symbol.asyncDispose]();
    for (const { log } of this.redissons.splice(0)) {
      if (COMPLAINT.test(log)) throw new Error(`Redisson complains of us:\n${log}`);
    }
  }
}

/** How long after its end the last callers of a contest may still be waiting for each other. */
const DRAIN_MS = 20_000;

/** Contends with so many callers altogether, as many in each process. */
export const nodeContends = async (
  processes: readonly Contender[],
  { callers, ...how }: Contend,
): Promise<readonly Had[]> => {
  for (const one of processes) one.send({ type: 'contend', callers: callers / processes.length, ...how });
  const each = await Promise.all(
    processes.map((one) => one.next('contended', { timeoutMs: how.forMs + DRAIN_MS })),
  );
  return each.flatMap(({ had }) => had);
};

export const javaContends = (java: Redisson, { key, callers, workMs, forMs }: Contend) =>
  java.tell('contend', { name: key, threads: callers, workMs, forMs });

export const servedTo = (had: readonly Had[]): number => had.reduce((sum, { served }) => sum + served, 0);

export const unserved = (had: readonly Had[]): number => had.filter(({ served }) => served === 0).length;
