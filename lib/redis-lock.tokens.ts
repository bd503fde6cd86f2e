import { Inject } from '@nestjs/common';

/**
 * The injection token of a lock service; `name` is that of `forRoot({ name })`. The description is a sentence,
 * because Nest quotes it when the provider is missing.
 */
export const getLockServiceToken = (name?: string): symbol =>
  Symbol.for(
    name === undefined
      ? 'LockService: import RedisLockModule.forRoot() into the root module'
      : `LockService "${name}": import RedisLockModule.forRoot({ name: '${name}' }) into the root module`,
  );

/**
 * Injects the lock service of a named module. The unnamed one needs no decorator: its class is its token.
 *
 * @example constructor(@InjectLockService('billing') private readonly locks: LockService) {}
 */
export const InjectLockService = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getLockServiceToken(name));
