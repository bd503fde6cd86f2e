import { openLocks, type StoreOfDemo } from './lock-desk.js';

export const memory: StoreOfDemo = {
  title: 'Memory',
  remark: 'Other processes would not see its locks, so one instance sells, without faults.',
  maxInstances: 1,
  findServer: () => Promise.resolve({ url: '', description: 'in the process of the app' }),
  open: openLocks,
};
