import { context, type Context } from '@opentelemetry/api';

interface ContextApiParts {
  _getContextManager?(): ContextManagerParts;
}

/** Parts of a context manager that are not in the types of every version of the API. */
interface ContextManagerParts {
  attach?(active: Context): { dispose(): void };
  readonly _asyncLocalStorage?: {
    enterWith?(active: Context | undefined): void;
    getStore(): Context | undefined;
  };
}

/**
 * Makes a context active for the code that runs from now on, synchronously or after it. Returns a function that undoes
 * that; call it before the current function returns. Returns undefined if the context manager cannot do so.
 *
 * A diagnostics channel calls its subscribers beside the traced function, so `context.with` has nothing to wrap. Newer
 * context managers have `attach` for that. Before, the storage of the context manager is the only way.
 */
export const activate = (active: Context): (() => void) | undefined => {
  const manager = (context as unknown as ContextApiParts)._getContextManager?.();
  if (manager?.attach) {
    const token = manager.attach(active);
    return () => token.dispose();
  }
  const storage = manager?._asyncLocalStorage;
  if (!storage?.enterWith) return undefined;
  const before = storage.getStore();
  storage.enterWith(active);
  return () => storage.enterWith?.(before);
};
