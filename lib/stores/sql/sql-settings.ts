import { LockConfigurationError } from '../../core/errors/lock.errors.js';

/** A setting that each session of a store sets, whatever its default in the server or for the role is. */
export interface SessionSetting {
  readonly name: string;
  /** As an expression of SQL. */
  readonly value: string;
  readonly why: string;
}

/** A setting with a value under which locks cannot work, and that the store does not set. */
export interface RefusedSetting {
  readonly name: string;
  /** @param all settings by name */
  readonly isRefused: (value: string, all: SettingValues) => boolean;
  readonly why: string;
  /** A value that is not refused. */
  readonly instead: string;
}

/** Values of settings by name. */
export type SettingValues = Readonly<Record<string, string | null>>;

/** @throws {LockConfigurationError} when a setting is refused */
export const checkSettingValues = <S extends RefusedSetting>(
  store: string,
  settings: readonly S[],
  values: SettingValues,
  remedyOf: (setting: S) => string,
): void => {
  const refused = settings.find(({ name, isRefused }) => isRefused(values[name]!, values));
  if (!refused) return;
  const { name, why } = refused;
  return refuse(`${store} cannot work with ${name} = '${values[name]}': ${why}. ${remedyOf(refused)}.`);
};

/** @throws {LockConfigurationError} */
export const refuse = (message: string, cause?: unknown): never => {
  throw new LockConfigurationError(message, { cause });
};
