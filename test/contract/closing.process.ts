// Arguments: the name of a store under contract, and its server's address.
// Uses the store, whether its server answers or not, closes it, says so, and has nothing more to do.
import { STORES } from '../support/stores/stores.js';

const store = STORES.find(({ name }) => name === process.argv[2])!.open(process.argv[3]);
const claim = {
  kind: 'exclusive',
  finalKey: 'lock:closing',
  owner: 'closing:1',
  leaseMs: 30_000,
  tokens: 1,
  waits: true,
} as const;
const listener = { notified: () => undefined, failed: () => undefined };
store.kinds.exclusive.watch?.(claim, { ...listener });
await Promise.allSettled([store.kinds.exclusive.acquire(claim), store.kinds.exclusive.release(claim)]);
await store.close();
store.kinds.exclusive.watch?.(claim, { ...listener });
process.stdout.write('closed\n');
