import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { exports } = require('nest-redis-lock/package.json') as { exports: Record<string, unknown> };

const namesOf = (module: unknown): string =>
  Object.keys(module as object)
    .filter((name) => name !== 'default' && name !== 'module.exports')
    .sort()
    .join(' ');

/** The names that both builds of a subpath export, or the package that it needs. */
const loaded = async (name: string): Promise<string> => {
  let required: unknown;
  try {
    required = require(name);
  } catch (error) {
    return `needs ${/'([^']+)'/.exec(String(error))?.[1]}`;
  }
  const [esm, cjs] = [namesOf(await import(name)), namesOf(required)];
  return esm === cjs ? esm : `import: ${esm}; require: ${cjs}`;
};

const found: Record<string, string> = {};
for (const subpath of Object.keys(exports).filter((one) => one !== './package.json'))
  found[subpath] = await loaded(`nest-redis-lock${subpath.slice(1)}`);
console.log(JSON.stringify(found));
