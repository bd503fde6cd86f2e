import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LockConfigurationError, LockKeyError } from '../../../lib/core/errors/lock.errors.js';
import { MistakeLog } from '../../../lib/nest/transport/mistake-log.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';

let logger: RecordingLogger;
beforeEach(() => {
  logger = new RecordingLogger();
  Logger.overrideLogger(logger);
});
afterEach(() => Logger.overrideLogger(['log', 'error', 'warn', 'debug', 'verbose', 'fatal']));

describe('MistakeLog', () => {
  it('tells once for each place and code', () => {
    const mistakes = new MistakeLog();
    for (const error of [new LockKeyError('no key'), new LockConfigurationError('no such option')]) {
      for (const where of ['Shop.pay', 'Shop.pay', 'Shop.refund']) mistakes.notify(error, where);
    }
    expect(logger.errors.map((line) => line.split(':')[0])).toEqual([
      'Shop.pay failed with LOCK_KEY_INVALID',
      'Shop.refund failed with LOCK_KEY_INVALID',
      'Shop.pay failed with LOCK_CONFIGURATION',
      'Shop.refund failed with LOCK_CONFIGURATION',
    ]);
  });

  it('logs each mistake of a client, in the debug log only', () => {
    const mistakes = new MistakeLog();
    const error = new LockKeyError('no key: <<id>> is undefined.', { clientPlaceholder: '<<id>>' });
    for (const _ of [1, 2]) mistakes.notify(error, 'Shop.pay');
    const line = 'Shop.pay refused a value of its client: no key: <<id>> is undefined.';
    expect([logger.errors, logger.debugLines]).toEqual([[], [line, line]]);
    mistakes.notify(new LockKeyError('no key'), 'Shop.pay');
    expect(logger.errors).toHaveLength(1);
  });

  it('remembers a bounded number of places, the latest ones', () => {
    const mistakes = new MistakeLog();
    const report = (where: string): void => mistakes.notify(new LockKeyError('no key'), where);
    for (let route = 0; route <= 1_000; route++) report(`GET /${route}`);
    for (const remembered of ['GET /1', 'GET /1000']) report(remembered);
    expect(logger.errors.length).toBe(1_001);
    report('GET /0');
    expect(logger.errors.length).toBe(1_002);
  });
});
