import { afterEach, beforeEach, expect } from 'vitest';
import { collectUnhandledRejections, type RejectionCollector } from './async.js';

/**
 * Every test of the file fails when a rejection was left unhandled. Called before a lab is made: then what its end
 * leaves counts as well.
 */
export const failOnUnhandledRejections = (): void => {
  let rejections: RejectionCollector;
  beforeEach(() => {
    rejections = collectUnhandledRejections();
  });
  afterEach(async () => {
    expect(await rejections.finish()).toEqual([]);
  });
};
