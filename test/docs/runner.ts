export { expect } from 'vitest';

/** Tests that a page writes, by their titles. */
export const writtenTests = new Map<string, () => Promise<void>>();

export const it = (title: string, test: () => Promise<void>): void => void writtenTests.set(title, test);
