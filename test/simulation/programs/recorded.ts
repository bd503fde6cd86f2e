import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const RECORDED = fileURLToPath(new URL('./recorded.json', import.meta.url));

/** What each program showed when it was recorded: a digest of what callers saw, and the requests that the store got. */
export const recorded = (): ReadonlyMap<string, readonly [digest: string, requests: number]> =>
  new Map(
    Object.entries(JSON.parse(readFileSync(RECORDED, 'utf8')) as Record<string, readonly [string, number]>),
  );

/**
 * Programs in which a difference is wanted, each with its reason. A commit that changes what callers see adds its programs
 * here first, and a later one records them again and empties this table.
 */
export const WANTED: Readonly<Record<string, string>> = {};
