// Asks git.
import { capture } from './process.mjs';

export const git = (...args) => capture('git', args).trim();

/** Returns the commit at which this work left the main branch; undefined where there is no main branch. */
export const mergeBase = () => {
  for (const main of ['origin/main', 'main']) {
    try {
      return git('merge-base', 'HEAD', main);
    } catch {
      continue;
    }
  }
  return undefined;
};
