import { invalidOption } from './option-checks.js';

/** Maximum length of a label. */
const MAX_LENGTH = 100;

/**
 * Returns a label, or `otherwise` for undefined.
 *
 * @throws LockConfigurationError for anything but well-formed text of 1 to 100 characters
 */
export const checkLabel = (value: unknown, otherwise: string): string => {
  if (value === undefined) return otherwise;
  if (typeof value === 'string' && value !== '' && value.length <= MAX_LENGTH && value.isWellFormed())
    return value;
  return invalidOption('label', `well-formed text of 1 to ${MAX_LENGTH} characters`, value);
};

/** Returns a text of any length as a label. */
export const asLabel = (text: string): string =>
  (text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text).toWellFormed();
