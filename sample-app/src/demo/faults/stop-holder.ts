import type { Acquired } from '../part-process.js';
import type { Part } from '../parts.js';

const POLL_MS = 20;

export interface HolderOptions {
  readonly instances: readonly Part[];
  /** Resolves with the owner of the lock in the store; undefined when it is free. */
  readonly owner: (key: string) => Promise<string | undefined>;
  /** Signal that ends the search. */
  readonly signal: AbortSignal;
}

/** Last message of an instance, which is stopped. */
export type StoppedHolder = Acquired & { readonly instance: Part };

/**
 * Stops an instance that reports the lock, and checks in the store whether it still holds it; if not, tries the next one.
 */
export const stopHolder = async (options: HolderOptions): Promise<StoppedHolder> => {
  const holds = async ({ key, owner }: StoppedHolder): Promise<boolean> =>
    (await options.owner(key))?.startsWith(owner) ?? false;
  for (;;) {
    const holder = await stopNextHolder(options);
    // Checks twice: a release that was in progress when the instance stopped has arrived at the second check.
    if ((await holds(holder)) && (await holds(holder))) return holder;
    holder.instance.kill('SIGCONT');
  }
};

/** Stops the next instance that reports the lock, and reads all its messages until it stands still. */
const stopNextHolder = ({ instances, signal }: HolderOptions): Promise<StoppedHolder> =>
  new Promise((resolve, reject) => {
    let holder: StoppedHolder | undefined;
    let timer: NodeJS.Timeout | undefined;
    const listeners = instances.map((instance) =>
      instance.onMessage((message) => {
        if (message.type !== 'acquired' || (holder && holder.instance !== instance)) return;
        // An instance hands a hold off between its callers, so the message of a later caller may follow.
        holder = { ...message, instance };
        if (timer) return;
        instance.kill('SIGSTOP');
        timer = setTimeout(() => {
          stopListening();
          resolve(holder!);
        }, POLL_MS);
      }),
    );
    const onAbort = () => {
      stopListening();
      reject(signal.reason as Error);
    };
    const stopListening = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      for (const off of listeners) off();
    };
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
  });
