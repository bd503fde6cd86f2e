import type { ModulesContainer } from '@nestjs/core';
import type { LockManager } from './core/lock-manager.js';
import { processWide } from './core/process-wide.js';
import { ServiceGroup } from './core/service-group.js';

/** What ends when an app does. */
type Stoppable = Pick<LockManager, 'refuseNew' | 'shutDown' | 'close'>;

const groups = processWide('groups', new WeakMap<ModulesContainer, ServiceGroup>());

/** The group of the managers of one app. Two apps in one process have two. */
export const groupOf = (modules: ModulesContainer): ServiceGroup => {
  const group = groups.get(modules) ?? new ServiceGroup();
  groups.set(modules, group);
  return group;
};

/**
 * Has a manager end with its app: no caller waits from the first moment on; once all modules are destroyed
 * running sections get their grace, before servers close, for those wait for their handlers; at last the store closes.
 *
 * Nest calls the hooks of modules one after the other, and waits for each: that of GraphQL waits for requests, which
 * may wait for locks. Whose turn is first changed between its versions, and lazily loaded modules have none. So every
 * module that is there gets a provider with the first hook, whichever is called first, and Nest's own module, which
 * is there from the beginning, the others.
 */
export const endWithApp = (modules: ModulesContainer, manager: Stoppable): void => {
  const onModuleDestroy = (): void => manager.refuseNew();
  const hooks = { onModuleDestroy };
  const allHooks = {
    onModuleDestroy,
    beforeApplicationShutdown: () => manager.shutDown(),
    onApplicationShutdown: () => manager.close(),
  };
  // One class for each manager, since it is the token under which a module keeps it.
  class LockShutdown {}
  [...modules.values()].forEach((module, at) => {
    module.addProvider({ provide: LockShutdown, useValue: at === 0 ? allHooks : hooks });
    // From Nest 12 on the providers of a module are called level by level: this one before those that wait.
    Object.assign(module.getProviderByKey(LockShutdown), { hierarchyLevel: Infinity });
  });
};
