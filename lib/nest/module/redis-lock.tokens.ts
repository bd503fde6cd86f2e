import { Inject, type Abstract } from '@nestjs/common';
import type { LockService } from '../service/lock.service.js';
import { invalidOption } from '../../core/settings/option-checks.js';
import { sharedByBuilds } from '../../core/util/both-builds.js';

/** Injection token of a lock service; opaque. */
export type LockServiceToken = Abstract<LockService>;

/**
 * Returns the injection token of a lock service; `name` is the one of `forRoot({ name })`.
 *
 * The token is a function because mocking libraries mock the token itself, and cannot mock a symbol. Its name is a
 * sentence because Nest quotes it when the provider is missing.
 */
export const getLockServiceToken = (name?: string): LockServiceToken => {
  if (name !== undefined && typeof name !== 'string')
    invalidOption('The name of a lock module', 'a string, as in forRoot({ name })', name);
  const module = name === undefined ? 'forRoot()' : `forRoot({ name: '${name}' })`;
  const forTests = name === undefined ? 'forRoot()' : `forRoot({ names: ['${name}'] })`;
  const sentence =
    `LockService${name === undefined ? '' : ` "${name}"`}: import RedisLockModule.${module} into the root module; ` +
    `in a test, RedisLockTestingModule.${forTests} of 'nest-redis-lock/testing'. If it is imported, the app has two ` +
    `copies of the package, which \`npm ls nest-redis-lock\` shows`;
  const token = Object.defineProperty(() => undefined, 'name', { value: sentence });
  // One token for each name: a module of one build serves classes that the other build has decorated.
  return sharedByBuilds(`token${name === undefined ? '' : `:${name}`}`, token as unknown as LockServiceToken);
};

/**
 * Injects the lock service of a named module. The unnamed one needs no decorator: its class is its token.
 *
 * @example constructor(@InjectLockService('billing') private readonly locks: LockService) {}
 */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getLockServiceToken(name));
