import type { Sample } from '../comparison.js';
import { overcrowded } from '../measure/overcrowded.js';
import { commandCounts } from '../measure/redis-commands.js';
import { jain, sum } from '../measure/statistics.js';
import { PERMITS } from '../subjects/subject.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { Redisson } from '../../support/redisson/redisson.js';
import type { Noted, Shared } from './load.js';

/** What the callers of Redisson go in by. */
export type RedissonStyle = 'readWrite' | 'semaphore' | 'permits';

/** What Redisson sends: all else that the server counts is run by its scripts. */
const SENT = ['eval', 'evalsha', 'script|load', 'subscribe', 'unsubscribe', 'ssubscribe', 'sunsubscribe'];
/** Long enough for all processes to have got the message. */
const START_IN_MS = 100;

export interface RedissonLoad {
  readonly key: string;
  /** In each process. */
  readonly callers: number;
  readonly workMs: number;
  readonly forMs: number;
  readonly shared: Shared;
}

/** What threads in several JVMs came to; as `Together` has it of processes of Node. */
export interface OfRedisson extends Omit<Sample, 'values'> {
  readonly rate: number;
  readonly jain: number;
  readonly unserved: number;
  readonly longestWaitMs: number;
  readonly commands: number | undefined;
  readonly cpuUs: number | undefined;
  /** Sections of each thread, for each process. */
  readonly results: readonly { readonly served: readonly number[] }[];
}

/** Processes of Java with a Redisson each. They start with the first load, and need Maven the first time of all. */
export class RedissonCrew implements AsyncDisposable {
  private started: Promise<readonly Redisson[]> | undefined;

  constructor(
    private readonly server: RedisServer,
    private readonly processes: number,
  ) {}

  async run(style: RedissonStyle, load: RedissonLoad): Promise<OfRedisson> {
    const { key: name, callers, workMs, forMs, shared } = load;
    const jvms = await (this.started ??= this.start());
    const permits = { name, permits: PERMITS };
    if (style === 'semaphore') await jvms[0]!.semaphore('trySetPermits', permits);
    if (style === 'permits') await jvms[0]!.permits('trySetPermits', permits);
    const writers = 'writers' in shared ? shared.writers : 0;
    const cpuBefore = await this.cpuMs(jvms);
    const before = await commandCounts(this.server);
    const startAt = Date.now() + START_IN_MS;
    const order = { name, by: style, threads: callers, writers, workMs, forMs, startAt };
    const ran = await Promise.all(jvms.map((jvm) => jvm.send('sections', order)));
    const after = await commandCounts(this.server);
    const cpuMs = (await this.cpuMs(jvms)) - cpuBefore;
    const sent = sum(SENT.map((command) => (after.get(command) ?? 0) - (before.get(command) ?? 0)));
    const threads = ran.flat();
    const served = threads.map((thread) => thread.served);
    const sections = sum(threads.map(({ times }) => times.length));
    const times = ran.flatMap((jvm) =>
      jvm.flatMap((thread, at) =>
        thread.times.map(([began, ended]): Noted => [began, ended, at < writers ? 'write' : 'read']),
      ),
    );
    return {
      results: ran.map((jvm) => ({ served: jvm.map((thread) => thread.served) })),
      rate: (sum(served) / forMs) * 1_000,
      jain: jain(served),
      unserved: served.filter((count) => count === 0).length,
      longestWaitMs: Math.max(...threads.map(({ longestMs }) => longestMs)),
      commands: sections > 0 ? sent / sections : undefined,
      cpuUs: sections > 0 ? (cpuMs / sections) * 1_000 : undefined,
      violations: overcrowded(times, shared),
      failures: 0,
      firstFailure: undefined,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const jvms = await this.started?.catch(() => []);
    await Promise.all((jvms ?? []).map((jvm) => jvm.kill()));
  }

  /** One after the other: the first one builds what all run. */
  private async start(): Promise<readonly Redisson[]> {
    const jvms: Redisson[] = [];
    for (let i = 0; i < this.processes; i += 1)
      jvms.push(await Redisson.start(this.server.url, { compiles: 'well' }));
    return jvms;
  }

  private async cpuMs(jvms: readonly Redisson[]): Promise<number> {
    return sum(await Promise.all(jvms.map((jvm) => jvm.send('cpuMs', {}))));
  }
}
