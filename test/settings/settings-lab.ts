import { LockConfigurationError } from '../../lib/core/errors/lock.errors.js';
import type { SqlStore } from '../../lib/stores/sql/sql.store.js';
import { openLocksOn } from '../support/stores/open-locks-on.js';
import { drill } from './drill.js';

/** A setting of the server, and one of its values. */
export interface Setting {
  readonly name: string;
  readonly value: string;
}

/** A server whose settings are tried one after the other. */
export interface SettingsLab extends AsyncDisposable {
  readonly name: string;
  /** Each boolean and each enumerated value that differs from the present one, and each least and greatest number. */
  settings(): Promise<readonly Setting[]>;
  /** Makes it the default of all later connections of the lock user. Rejects when the server does not take it. */
  set(setting: Setting): Promise<void>;
  /** Restores what the server had in the beginning, and empties the table. */
  reset(): Promise<void>;
  store(pooled: boolean): SqlStore;
}

export interface Verdict {
  /** `impossible`: the server does not take the setting. */
  readonly outcome: 'held' | 'refused' | 'broke' | 'impossible';
  /** Why. */
  readonly reasons: readonly string[];
}

const messageOf = (error: unknown): string => (error as Error).message;

/** Opens two apps and drills them. A store may refuse to open. */
const drilled = async (lab: SettingsLab, pooled: boolean): Promise<Verdict> => {
  const appOf = (store: SqlStore) => ({ store, ...openLocksOn(store) });
  const apps = [appOf(lab.store(pooled)), appOf(lab.store(pooled))] as const;
  try {
    for (const { manager } of apps) await manager.open();
    const wrong = await drill(apps);
    return { outcome: wrong.length > 0 ? 'broke' : 'held', reasons: wrong };
  } catch (error) {
    const outcome = error instanceof LockConfigurationError ? 'refused' : 'broke';
    return { outcome, reasons: [messageOf(error)] };
  } finally {
    for (const { manager } of apps) await manager.close();
  }
};

/** Drills two apps whose connections have the settings as their defaults. */
export const verdictOn = async (
  lab: SettingsLab,
  settings: readonly Setting[],
  pooled: boolean,
): Promise<Verdict> => {
  try {
    for (const setting of settings) await lab.set(setting);
    return await drilled(lab, pooled);
  } catch (error) {
    return { outcome: 'impossible', reasons: [messageOf(error)] };
  } finally {
    await lab.reset();
  }
};
