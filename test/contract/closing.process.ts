// Arguments: the name of a store under contract, and its server's address.
// Uses the store, whether its server answers or not, closes it, says so, and has nothing more to do.
import { STORES } from '../support/stores/stores.js';

const store = STORES.find(({ name }) => name === process.argv[2])!.open(process.argv[3]);
const claim = {
  kind: 'exclusive',
  key: 'lock:closing',
  owner: 'closing:1',
  leaseMs: 30_000,
  fenceBlock: 1,
} as const;
const nothing = (): void => undefined;
store.watch('exclusive', claim.key, nothing, nothing);
await Promise.allSettled([store.acquire(claim), store.release(claim)]);
await store.close();
store.watch('exclusive', claim.key, nothing, nothing);
process.stdout.write('closed\n');
