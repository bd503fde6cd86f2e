// Bundles what the compiler wrote to dist/lib: layers in CommonJS for both builds, and the Nest layer in each format.
// docs/decisions/0008 has the reasons. `.ci/build.mjs` runs it.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { parse } from 'acorn';
import { defineConfig } from 'rolldown';
import { root } from './process.mjs';

const compiled = join(root, 'dist', 'lib');
const { exports, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Entry points of the package: names, and their files in dist/lib. */
const entries = Object.fromEntries(
  Object.entries(exports)
    .filter(([, conditions]) => conditions.import)
    .map(([path]) => path.replace(/^\.\/?/, ''))
    .map((name) => [name || 'index', join(compiled, name ? join('entries', `${name}.js`) : 'index.js')]),
);

/** Compiled files without those of the shell command, which imports only entry points. */
const files = readdirSync(compiled, { recursive: true })
  .filter((path) => path.endsWith('.js') && !path.startsWith(`cli${sep}`))
  .map((path) => join(compiled, path))
  .sort();

/** Returns the file that an import leads to; undefined for a package. */
const targetOf = (specifier, importer) =>
  specifier.startsWith('.') ? resolve(dirname(importer), specifier) : undefined;

/** Returns the static imports and re-exports of a file: specifiers, and names of values. */
const importsOf = (file) => {
  const { body } = parse(readFileSync(file, 'utf8'), { ecmaVersion: 'latest', sourceType: 'module' });
  return body
    .filter(({ source }) => source)
    .map(({ source, specifiers = [undefined] }) => ({
      specifier: source.value,
      names: specifiers.map((one) => (one?.imported ?? one?.local)?.name),
    }));
};

const layers = new Map();

/**
 * Returns the layer that a file of dist/lib belongs to. Both builds load each layer from one file, except `nest`. A store
 * is a layer, and so is the code of a subpath: an app that does not use it does not load it.
 */
const layerOf = (file) => {
  if (!layers.has(file)) layers.set(file, findLayer(file));
  return layers.get(file);
};

const findLayer = (file) => {
  const [folder, name, inFolder] = relative(compiled, file).split(sep);
  if (folder === 'stores' && inFolder) return name;
  // `npm run deps` checks that these folders import no Nest.
  if (['core', 'key', 'stores'].includes(folder)) return 'core';
  if (needsNest(file)) return 'nest';
  return Object.hasOwn(entries, folder) ? folder : 'common';
};

/** Nest and RxJS are other files for ES modules than for CommonJS, and so is an entry point, which `import()` loads. */
const needsNest = (file) =>
  Object.values(entries).includes(file) ||
  /\bimport\(/.test(readFileSync(file, 'utf8')) ||
  importsOf(file).some(({ specifier }) => {
    const target = targetOf(specifier, file);
    return target ? layerOf(target) === 'nest' : /^(@nestjs\/|rxjs)/.test(specifier);
  });

/** Returns what other layers import from a layer: the file of each name. */
const exportsOf = (layer) => {
  const modules = new Map();
  for (const file of files) {
    if (layerOf(file) === layer) continue;
    for (const { specifier, names } of importsOf(file)) {
      const module = targetOf(specifier, file);
      if (!module || layerOf(module) !== layer) continue;
      for (const name of names) {
        if (!name) throw new Error(`${relative(root, file)} has to name what it imports from ${specifier}`);
        const other = modules.get(name) ?? module;
        if (other !== module)
          throw new Error(`two files of the ${layer} layer export ${name}: ${other}, ${module}`);
        modules.set(name, module);
      }
    }
  }
  return modules;
};

/** Returns the source of a layer's entry point, from which the bundle is made. */
const entryOf = (layer) =>
  [...exportsOf(layer)].map(([name, module]) => `export { ${name} } from '${module}';`).join('\n');

/**
 * Returns a CommonJS file that ES modules import instead of a layer. To learn the names that an import may have, Node
 * parses the imported file once more, in JavaScript. For the whole core, Node 20 needs longer than for loading it.
 */
const namesOf = (layer) => {
  const lines = [...exportsOf(layer).keys()].sort().map((name) => `exports.${name} = ${layer}.${name};`);
  return ['"use strict";', '', `const ${layer} = require("./${layer}.cjs");`, '', ...lines, ''].join('\n');
};

/** Leaves packages and the files of other layers outside of a bundle. */
const othersAreExternal = (layer, format) => ({
  name: 'others-are-external',
  resolveId: (id, importer) => {
    if (!importer || isAbsolute(id)) return null;
    const target = targetOf(id, importer);
    if (!target) return { id, external: true };
    const other = layerOf(target);
    if (other === layer) return null;
    return { id: `../core/${other}${format === 'esm' ? '-names' : ''}.cjs`, external: true };
  },
});

const options = {
  platform: 'node',
  transform: { define: { PACKAGE_VERSION: JSON.stringify(version) } },
  // Nothing of the library is imported for its effects alone, and one package is.
  treeshake: { moduleSideEffects: (id) => id === 'reflect-metadata' },
};

// Names are all that a stack trace shows, so nothing is minified. Comments belong into the declarations.
const output = (format, folder, extension) => ({
  format,
  dir: join(root, 'dist', folder),
  entryFileNames: `[name].${extension}`,
  comments: false,
  minify: false,
  minifyInternalExports: false,
  strict: true,
  esModule: true,
  generatedCode: { symbols: false },
  // Jest loads CommonJS without `import()`.
  dynamicImportInCjs: false,
});

/** Has acorn loaded at its first use. A bundler sees the `require` of a constant name. */
const acornAtFirstUse = {
  name: 'acorn-at-first-use',
  resolveId: (id, importer) => {
    if (id !== 'acorn') return null;
    return importer === '\0acorn' ? { id, external: true } : '\0acorn';
  },
  load: (id) =>
    id === '\0acorn' ? "export const parse = (...args) => require('acorn').parse(...args);" : null,
};

/** Takes the comments out of Lua scripts, which each server would get with the script. */
const luaWithoutComments = {
  name: 'lua-without-comments',
  transform: (code) => code.replaceAll(/^ *-- .*\n/gm, ''),
};

/** A layer that both builds load: one file. */
const shared = (layer) => ({
  ...options,
  input: { [layer]: layer },
  plugins: [
    {
      name: 'entry-of-layer',
      resolveId: (id) => (id === layer ? `\0${layer}` : null),
      load: (id) => (id === `\0${layer}` ? entryOf(layer) : null),
    },
    acornAtFirstUse,
    luaWithoutComments,
    othersAreExternal(layer, 'cjs'),
    {
      name: 'names-of-layer',
      generateBundle() {
        this.emitFile({ type: 'asset', fileName: `${layer}-names.cjs`, source: namesOf(layer) });
      },
    },
  ],
  output: output('cjs', 'core', 'cjs'),
});

const nest = (format, folder) => ({
  ...options,
  input: entries,
  plugins: [othersAreExternal('nest', format)],
  output: {
    ...output(format, folder, 'js'),
    // What two entry points need is in one more file, which has a name of its own and no digest.
    codeSplitting: { groups: [{ name: 'nest', minShareCount: 2 }] },
    chunkFileNames: '[name].js',
  },
});

/** The shell command. It imports the entry points of the package, as an app does. */
const cli = {
  ...options,
  input: { cli: join(compiled, 'cli', 'main.js') },
  plugins: [
    {
      name: 'entry-points-are-external',
      resolveId: (id, importer) => {
        if (!importer || isAbsolute(id) || id.startsWith('./')) return null;
        const name = Object.keys(entries).find((one) => entries[one] === targetOf(id, importer));
        return { id: name ? `./${name}.js` : id, external: true };
      },
    },
  ],
  output: output('esm', 'esm', 'js'),
};

export default defineConfig([
  ...[...new Set(files.map(layerOf))].filter((layer) => layer !== 'nest').map(shared),
  nest('esm', 'esm'),
  nest('cjs', 'cjs'),
  cli,
]);
