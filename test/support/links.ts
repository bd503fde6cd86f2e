import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { anchors, links } from './markdown.js';

/**
 * Returns the links of a document that lead nowhere inside `root`. Links to other places count as alive, except those
 * that begin with `address`: the address under which `root` is published.
 *
 * @param document its path from `root`.
 */
export const deadLinks = (root: string, document: string, address?: string): string[] => {
  const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');
  const pathTo = (target: string): string => {
    const published = address && target.startsWith(address) ? target.slice(address.length) : undefined;
    if (published !== undefined) {
      return published
        .replace(/^\/(blob|tree)\/main\//, '')
        .replace(/^\/actions\/workflows\/([\w.-]+)(\/badge\.svg)?$/, '.github/workflows/$1');
    }
    return target === '' ? document : join(dirname(document), target);
  };
  return links(textOf(document)).filter((link) => {
    if (/^[a-z]+:/.test(link) && !(address && link.startsWith(address))) return false;
    // A page of a package has another root than a page of a repository.
    if (link.startsWith('/')) return true;
    const [target = '', anchor] = link.split('#');
    const path = pathTo(target);
    const file = join(root, path);
    if (!existsSync(file) || relative(root, file).startsWith('..')) return true;
    if (anchor === undefined) return false;
    return statSync(file).isDirectory() || !anchors(textOf(path)).includes(anchor);
  });
};
