import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/async.js';
import type { Contender } from '../contenders.js';
import { libraries } from '../contenders.js';
import { commandCounts, sentBetween } from '../measure/redis-commands.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import { subjectNamed } from '../subjects/index.js';
import type { SubjectOptions } from '../subjects/subject.js';
import type { Bench } from '../workload.js';
import { growthOf } from './growth.js';

const LEASE_MS = 3_000;
const QUICK_LEASE_MS = 1_000;
const POINTS = [100, 1_000, 10_000];
const GET_THEM_MS = 20_000;
/** The number of keys that another process tries to acquire meanwhile, and for how long. */
const TRIED = 50;
const TRY_MS = 500;

interface Holder {
  readonly worker: SubjectWorker;
  held: number;
}

const holders = new Map<string, Holder>();

const optionsOf = ({ server, quick }: Bench): SubjectOptions => ({
  url: server.url,
  leaseMs: quick ? QUICK_LEASE_MS : LEASE_MS,
});

const holderOf = async (bench: Bench, { name, subject }: Contender): Promise<Holder> => {
  const existing = holders.get(name);
  if (existing) return existing;
  const holder = { worker: await SubjectWorker.start(subject, optionsOf(bench)), held: 0 };
  holders.set(name, holder);
  return holder;
};

const end = async ({ name }: Contender): Promise<void> => {
  await holders.get(name)?.worker.end();
  holders.delete(name);
};

/** Returns how many keys another process gets when it tries for a while: none, if they are held. */
const takenBy = async (other: SubjectWorker, style: string, keys: readonly string[]): Promise<number> => {
  await other.hold(style, keys);
  await sleep(TRY_MS);
  return (await other.look()).entered;
};

const keyOf = ({ name }: Contender, round: number, n: number): string => `${name}-held-${round}-${n}`;

export const leases = growthOf({
  name: 'leases',
  title: `Growth with held leases: each held for longer than its ${LEASE_MS / 1_000} s, so that it needs renewals`,
  shows:
    'What a process spends to renew a growing number of locks, and whether it keeps them: another process tries to acquire some.',
  doesNotShow:
    'Leases of other lengths: a longer lease needs fewer renewals and survives a longer pause of the process. ' +
    'The table leaves out murlock, because it does not renew. The service of @nestjs-redis/lock renews only on request, as it does here.',
  axis: { what: 'leases', points: POINTS },
  quickPoints: [1_000],
  contenders: libraries.filter(({ renews }) => renews),
  metrics: [
    { key: 'cpu', what: 'CPU time per second', unit: 'ms', better: 'less' },
    { key: 'commands', what: 'Redis commands per second', unit: '', better: 'less' },
  ],
  charts: { cpu: 'CPU time per second, by leases that are held and renewed (of 3 s each)' },
  async measure(bench, contender, at, round) {
    const { server } = bench;
    const style = contender.anyKeyStyle ?? contender.style;
    const { insideScripts } = await subjectNamed(contender.subject);
    const starting = SubjectWorker.start(contender.subject, optionsOf(bench));
    try {
      const [holder, other] = await Promise.all([holderOf(bench, contender), starting]);
      const { worker } = holder;
      const look = async () => {
        const state = await worker.look();
        return { ...state, counts: await commandCounts(server), atMs: performance.now() };
      };
      const more = Array.from({ length: at - holder.held }, (_none, n) =>
        keyOf(contender, round, holder.held + n),
      );
      await worker.hold(style, more);
      holder.held = at;
      await until(async () => (await worker.look()).entered >= at, {
        timeoutMs: GET_THEM_MS,
        what: `${at} leases are held`,
      });
      const before = await look();
      // One whole lease: by its end each of them was renewed, or is gone.
      await sleep(optionsOf(bench).leaseMs);
      const after = await look();
      const seconds = (after.atMs - before.atMs) / 1_000;

      const step = Math.floor(at / TRIED);
      const tried = Array.from({ length: TRIED }, (_none, n) => keyOf(contender, round, n * step));
      return {
        values: {
          cpu: (after.cpuMs - before.cpuMs) / seconds,
          commands: sentBetween(before.counts, after.counts, insideScripts) / seconds,
        },
        violations: await takenBy(other, style, tried),
        failures: after.failures,
        firstFailure: after.firstFailure,
      };
    } catch (error) {
      await end(contender);
      throw error;
    } finally {
      await (await starting).end();
    }
  },
  done: (_bench, contender) => end(contender),
});
