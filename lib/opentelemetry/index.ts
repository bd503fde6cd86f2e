export {
  RedisLockInstrumentation,
  type MeterProviderLike,
  type TracerProviderLike,
} from './redis-lock-instrumentation.js';
export type { RedisLockInstrumentationConfig } from './instrumentation-config.js';
