import { Inject, type Abstract } from '@nestjs/common';
import type { LockService } from './lock.service.js';
import { processWide } from './core/process-wide.js';

/** What a lock service is injected by; opaque. */
export type LockServiceToken = Abstract<LockService>;

/**
 * The injection token of a lock service; `name` is that of `forRoot({ name })`.
 *
 * It is a function, because mocking libraries make a mock out of the token itself, which nobody can of a symbol. Its
 * name is a sentence, because Nest quotes that when the provider is missing.
 */
export const getLockServiceToken = (name?: string): LockServiceToken => {
  const module = name === undefined ? 'forRoot()' : `forRoot({ name: '${name}' })`;
  const forTests = name === undefined ? 'forRoot()' : `forRoot({ names: ['${name}'] })`;
  const sentence =
    `LockService${name === undefined ? '' : ` "${name}"`}: import RedisLockModule.${module} into the root module; ` +
    `in a test, RedisLockTestingModule.${forTests} of 'nest-redis-lock/testing'`;
  const token = Object.defineProperty(() => undefined, 'name', { value: sentence });
  // Of each name one for the process: a module of one build serves what the other has decorated.
  return processWide(`token${name === undefined ? '' : `:${name}`}`, token as unknown as LockServiceToken);
};

/**
 * Injects the lock service of a named module. The unnamed one needs no decorator: its class is its token.
 *
 * @example constructor(@InjectLockService('billing') private readonly locks: LockService) {}
 */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getLockServiceToken(name));
