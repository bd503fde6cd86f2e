import { TestWorker } from '../../support/worker.js';
import { median } from '../measure/statistics.js';
import type { FromInTurn, ToInTurn } from '../processes/in-turn.process.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const SUBJECTS = ['floor', 'nest-redis-lock'] as const;
const SLICE_MS = 200;
const SLICES = 20;
const WARM_UP_SLICES = 6;

/** The CPU time of a lock in its process. Both subjects run in one process, so that neither has the better CPU. */
export const cpuTime: Workload = {
  name: 'cpu-time',
  title: 'CPU time per lock: one caller, free key, library and floor in turn in one process',
  async run({ server, progress, rounds, pace }: Bench): Promise<Outcome> {
    await using worker = TestWorker.start<ToInTurn, FromInTurn>(
      new URL('../processes/in-turn.process.ts', import.meta.url),
      { library: 'built' },
    );
    worker.send({ type: 'open', url: server.url, subjects: SUBJECTS });
    await worker.next('opened');
    let turnedRound = false;
    const pair = async (): Promise<readonly number[]> => {
      turnedRound = !turnedRound;
      worker.send({ type: 'run', forMs: SLICE_MS * pace, turnedRound });
      return (await worker.next('ran')).cpuUs;
    };
    progress.begin(this.title, rounds + 1);
    for (let i = 0; i < WARM_UP_SLICES; i++) await pair();
    progress.step();
    const ratios: number[] = [];
    const times: number[][] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const ofRound: number[] = [];
      for (let i = 0; i < SLICES; i++) {
        const [floorUs, oursUs] = (await pair()) as [number, number];
        ofRound.push(oursUs / floorUs);
        times[0]!.push(floorUs);
        times[1]!.push(oursUs);
      }
      ratios.push(median(ofRound));
      progress.step();
    }
    await worker.finish();
    return {
      findings: [
        {
          what: 'CPU time per lock, relative to the floor',
          values: ratios,
          unit: 'ratio',
          target: { atMost: 1.25 },
        },
        ...SUBJECTS.map((name, at) => ({
          what: `CPU time per lock: ${name}`,
          values: times[at]!,
          unit: 'µs' as const,
        })),
      ],
      violations: 0,
    };
  },
};
