export {
  RedisLockInstrumentation,
  type MeterProviderLike,
  type TracerProviderLike,
} from '../opentelemetry/redis-lock-instrumentation.js';
export type { RedisLockInstrumentationConfig } from '../opentelemetry/instrumentation-config.js';
