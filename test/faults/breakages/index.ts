import type { Breakage } from './breakage.js';
import { HANDING_BREAKAGES } from './handing.breakages.js';
import { HOLDING_BREAKAGES } from './holding.breakages.js';
import { MISUSE_BREAKAGES } from './misuse.breakages.js';
import { SHARING_BREAKAGES } from './sharing.breakages.js';
import { UNDOING_BREAKAGES } from './undoing.breakages.js';
import { WAITING_BREAKAGES } from './waiting.breakages.js';

export const BREAKAGES: readonly Breakage[] = [
  ...HOLDING_BREAKAGES,
  ...WAITING_BREAKAGES,
  ...UNDOING_BREAKAGES,
  ...HANDING_BREAKAGES,
  ...MISUSE_BREAKAGES,
  ...SHARING_BREAKAGES,
];
