import type { LaboratoryMistake, Mistake, MistakeOnRedis, SimulatedMistake } from './mistake.js';
import { HAND_OFF_MISTAKES } from './table/hand-off.mistakes.js';
import { HOLDING_MISTAKES } from './table/holding.mistakes.js';
import { QUEUE_MISTAKES } from './table/queue.mistakes.js';
import { MISUSE_MISTAKES } from './table/misuse.mistakes.js';
import { OBJECT_MISTAKES } from './table/objects.mistakes.js';
import { PERMIT_MISTAKES } from './table/permits.mistakes.js';
import { READ_WRITE_MISTAKES } from './table/read-write.mistakes.js';
import { SHARING_MISTAKES } from './table/sharing.mistakes.js';
import { UNDOING_MISTAKES } from './table/undoing.mistakes.js';
import { WAITING_MISTAKES } from './table/waiting.mistakes.js';

/** All deliberate mistakes. Each has to be noticed where it is played. */
export const MISTAKES: readonly Mistake[] = [
  ...HOLDING_MISTAKES,
  ...WAITING_MISTAKES,
  ...QUEUE_MISTAKES,
  ...UNDOING_MISTAKES,
  ...HAND_OFF_MISTAKES,
  ...MISUSE_MISTAKES,
  ...SHARING_MISTAKES,
  ...PERMIT_MISTAKES,
  ...READ_WRITE_MISTAKES,
  ...OBJECT_MISTAKES,
];

/** Those that the simulation plays. */
export const SIMULATED: readonly SimulatedMistake[] = MISTAKES.filter(
  (mistake): mistake is SimulatedMistake => mistake.simulation !== undefined,
);

/** Those that the laboratory plays. */
export const IN_LABORATORY: readonly LaboratoryMistake[] = MISTAKES.filter(
  (mistake): mistake is LaboratoryMistake => mistake.laboratory !== undefined,
);

/** Those that are played on a real server. */
export const ON_REDIS: readonly MistakeOnRedis[] = MISTAKES.filter(
  (mistake): mistake is MistakeOnRedis => mistake.onRedis !== undefined,
);
