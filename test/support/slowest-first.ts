import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Small files that take long. By their size they would come last, and all others would have ended before them. */
const SLOW = [
  'test/contract/on-redis/contract.spec.ts',
  'test/contract/on-redis/cluster.spec.ts',
  'test/soak/soak.spec.ts',
  'test/e2e/flash-sale.spec.ts',
  'test/e2e/flash-sale-serve.spec.ts',
  'test/simulation/simulation.spec.ts',
  'test/simulation/overload/overload.spec.ts',
  'test/integration/cluster-failover.spec.ts',
  'test/integration/sentinel.spec.ts',
];

/** Vitest's order of the files, with the slowest ones at the start. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification): boolean => SLOW.some((file) => moduleId.endsWith(file));
    const sorted = await super.sort(files);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}
