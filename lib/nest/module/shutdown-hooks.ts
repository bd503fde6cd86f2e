import type { ModulesContainer } from '@nestjs/core';
import type { LockManager } from '../../core/service/lock-manager.js';
import { sharedByBuilds } from '../../core/util/both-builds.js';
import { ServiceGroup } from '../../core/context/service-group.js';

/** Part of a manager that an app calls when it stops. */
type Stoppable = Pick<LockManager, 'refuseNew' | 'shutDown' | 'close'>;

const groups = sharedByBuilds('groups', new WeakMap<ModulesContainer, ServiceGroup>());

/** Returns the group of the managers of one app. Two apps in one process have two groups. */
export const groupOf = (modules: ModulesContainer): ServiceGroup => {
  const group = groups.get(modules) ?? new ServiceGroup();
  groups.set(modules, group);
  return group;
};

/**
 * Stops a manager with its app, in three steps. At first new callers and waiters are rejected. Once all modules are
 * destroyed, running sections get their grace period. That is before servers close, because they wait for their
 * handlers. At last the store closes.
 *
 * Nest calls the hooks of modules one after the other, and waits for each. GraphQL's hook waits for requests, which may
 * wait for locks. Nest versions call the modules in different orders, and lazily loaded modules have no hooks. So every
 * present module gets a provider with the first hook, and one of them is called first. Nest's own module, which is
 * always there, gets the other two hooks as well.
 */
export const endWithApp = (modules: ModulesContainer, manager: Stoppable): void => {
  const onModuleDestroy = (): void => manager.refuseNew();
  const hooks = { onModuleDestroy };
  const allHooks = {
    onModuleDestroy,
    beforeApplicationShutdown: () => manager.shutDown(),
    onApplicationShutdown: () => manager.close(),
  };
  // One class for each manager: it is the token under which a module keeps the provider.
  class LockShutdown {}
  [...modules.values()].forEach((module, at) => {
    module.addProvider({ provide: LockShutdown, useValue: at === 0 ? allHooks : hooks });
    // Nest 12 calls the providers of a module level by level. This one comes before providers that wait.
    Object.assign(module.getProviderByKey(LockShutdown), { hierarchyLevel: Infinity });
  });
};
