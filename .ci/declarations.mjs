// Rolls up the declarations that the compiler wrote to dist/lib, and writes them to dist/types. `.ci/build.mjs` starts it:
// the set-up script loads that before any package is installed.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';
import { root } from './process.mjs';

const at = (...path) => join(root, ...path);
const { exports, peerDependenciesMeta = {} } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
const optionalPeers = Object.keys(peerDependenciesMeta).join('|');
const importOfPeer = new RegExp(`^import .* from '(${optionalPeers})(/[^']*)?';$`, 'gm');

/** Lets TypeScript compile an app that has no ioredis, for example, whose types are then `any`. */
const withoutPeers = (text) => text.replaceAll(importOfPeer, '// @ts-ignore: $1 is an optional peer.\n$&');

/**
 * Returns the declarations that the entry points export, and the ones that these extend, join, or are of. Editors show
 * the comments of these only.
 */
const exportedBy = (entries) => {
  const program = ts.createProgram(entries, { module: ts.ModuleKind.NodeNext, skipLibCheck: true });
  const checker = program.getTypeChecker();
  const exported = new Set();
  const include = (symbol) => {
    const original =
      symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    for (const declaration of original?.declarations ?? []) {
      if (exported.has(declaration)) continue;
      exported.add(declaration);
      for (const clause of declaration.heritageClauses ?? []) clause.types.forEach(includeNamed);
      const hasType = ts.isTypeAliasDeclaration(declaration) || ts.isVariableDeclaration(declaration);
      if (hasType && declaration.type) includeNamed(declaration.type);
    }
  };
  const includeNamed = (node) => {
    if (ts.isExpressionWithTypeArguments(node)) include(checker.getSymbolAtLocation(node.expression));
    if (ts.isTypeReferenceNode(node)) include(checker.getSymbolAtLocation(node.typeName));
    ts.forEachChild(node, includeNamed);
  };
  for (const entry of entries) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(entry));
    checker.getExportsOfModule(module).forEach(include);
  }
  return { program, exported };
};

const printer = ts.createPrinter({ removeComments: true });

/** Returns a declaration file with the comments of what is exported. */
const withoutInternalComments = (file, { program, exported }) => {
  const source = program.getSourceFile(file);
  const isExported = (statement) =>
    exported.has(statement) ||
    (ts.isVariableStatement(statement) &&
      statement.declarationList.declarations.some((one) => exported.has(one)));
  return source.statements
    .map((statement) =>
      isExported(statement)
        ? statement.getFullText(source).trim()
        : printer.printNode(ts.EmitHint.Unspecified, statement, source),
    )
    .join('\n')
    .concat('\n');
};

// Lets both builds share one set of declarations. A class with private members is a distinct type in every file that
// declares it. Otherwise a lock service or a lease of one build would not fit code compiled with the other.
const types = at('dist', 'types');
const entries = Object.values(exports).filter(({ import: esm }) => esm);
const names = entries.map(({ require: cjs }) => relative(types, at(cjs.types)).replace(/\.d\.ts$/, ''));

const bundle = await rollup({
  input: Object.fromEntries(names.map((name) => [name, at('dist', 'lib', `${name}.d.ts`)])),
  // With this hook, an entry point imports types from others: the declarations of a store would need the types of Nest.
  plugins: [{ ...dts(), generateBundle: undefined }],
});
const { output } = await bundle.write({
  dir: types,
  entryFileNames: '[name].d.ts',
  chunkFileNames: ({ name }) => `shared/${name.replace(/\.d$/, '')}.d.ts`,
  minifyInternalExports: false,
  hoistTransitiveImports: false,
});
await bundle.close();

const declared = exportedBy(names.map((name) => join(types, `${name}.d.ts`)));
for (const { fileName } of output) {
  const file = join(types, fileName);
  writeFileSync(file, withoutPeers(withoutInternalComments(file, declared)));
}
for (const { import: esm, require: cjs } of entries) {
  const declarations = relative(dirname(esm.types), cjs.types).replace(/\.d\.ts$/, '.js');
  writeFileSync(at(esm.types), `export * from '${declarations}';\n`);
}
