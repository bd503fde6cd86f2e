// Compiles the sources that processes of tests load, into the cache of hooks.mjs. Without that, each of the first processes of a
// new checkout compiles all of them, at the same time as the others.
import { readdirSync } from 'node:fs';
import { load } from './hooks.mjs';

export default () => {
  for (const folder of ['lib', 'test/support']) {
    const url = new URL(`../../../${folder}/`, import.meta.url);
    const files = readdirSync(url, { recursive: true });
    for (const file of files) if (file.endsWith('.ts')) load(new URL(file, url).href);
  }
};
