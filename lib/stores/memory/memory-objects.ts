import type { Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { LatchStore, SemaphoreStore } from '../../core/seam/object-stores.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { MAX_AMOUNT } from '../../core/settings/object-call.js';
import type { Numbers } from './kinds/numbers.js';
import type { MemoryHost } from './memory-kind.js';

class MemoryNumbers {
  constructor(private readonly host: MemoryHost) {}

  watch(finalKey: string, listener: WatchListener): Watch {
    return this.host.watch(finalKey, listener);
  }

  protected request<T>(work: (numbers: Numbers) => T): Promise<T> {
    return this.host.request(() => work(this.host.space.numbers));
  }

  protected setNew(finalKey: string, number: number): Promise<boolean> {
    return this.request((numbers) => {
      if (numbers.get(finalKey) !== undefined) return false;
      numbers.set(finalKey, number);
      numbers.announce(finalKey);
      return true;
    });
  }

  protected current(finalKey: string): Promise<number> {
    return this.request((numbers) => numbers.get(finalKey) ?? 0);
  }
}

export class MemorySemaphores extends MemoryNumbers implements SemaphoreStore {
  take(finalKey: string, permits: number): Promise<boolean> {
    return this.request((numbers) => {
      const number = numbers.get(finalKey) ?? 0;
      if (number < permits) return false;
      numbers.set(finalKey, number - permits);
      return true;
    });
  }

  set(finalKey: string, permits: number): Promise<boolean> {
    return this.setNew(finalKey, permits);
  }

  add(finalKey: string, permits: number): Promise<void> {
    return this.request((numbers) => {
      const sum = (numbers.get(finalKey) ?? 0) + permits;
      if (Math.abs(sum) > MAX_AMOUNT) {
        const message = `it would have ${sum} permits, and ${MAX_AMOUNT} is the limit`;
        throw new StoreFailure(message, 'not-executed', { keyOnly: true, claimOnly: true });
      }
      numbers.set(finalKey, sum);
      numbers.announce(finalKey);
    });
  }

  free(finalKey: string): Promise<number> {
    return this.current(finalKey);
  }

  drain(finalKey: string): Promise<number> {
    return this.request((numbers) => {
      const number = numbers.get(finalKey);
      if (number !== undefined) numbers.set(finalKey, 0);
      return number ?? 0;
    });
  }

  remove(finalKey: string): Promise<boolean> {
    return this.request((numbers) => {
      const wasThere = numbers.get(finalKey) !== undefined;
      numbers.set(finalKey, undefined);
      return wasThere;
    });
  }
}

export class MemoryLatches extends MemoryNumbers implements LatchStore {
  set(finalKey: string, count: number): Promise<boolean> {
    return this.setNew(finalKey, count);
  }

  countDown(finalKey: string): Promise<void> {
    return this.request((numbers) => {
      const number = numbers.get(finalKey);
      if (number === undefined) return;
      numbers.set(finalKey, number > 1 ? number - 1 : undefined);
      if (number <= 1) numbers.announce(finalKey);
    });
  }

  count(finalKey: string): Promise<number> {
    return this.current(finalKey).then((count) => Math.max(0, count));
  }

  remove(finalKey: string): Promise<boolean> {
    return this.request((numbers) => {
      const wasThere = numbers.get(finalKey) !== undefined;
      numbers.set(finalKey, undefined);
      if (wasThere) numbers.announce(finalKey);
      return wasThere;
    });
  }
}
