// Given to Node with --import: writes down, in the file IMPORTS_FILE, what the library imports and requires while the
// app runs. Hooks of Node 20 do not see what a CommonJS module requires.
import { appendFileSync } from 'node:fs';
import Module, { register } from 'node:module';

register('./watch-imports.hooks.mjs', import.meta.url);

const load = Module._load;
Module._load = function (specifier, parent, ...rest) {
  if (parent?.filename?.includes('/node_modules/nest-redis-lock/'))
    appendFileSync(process.env.IMPORTS_FILE, `${specifier}\n`);
  return load.call(this, specifier, parent, ...rest);
};
