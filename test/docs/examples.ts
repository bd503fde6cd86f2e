import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { Block } from './pages.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = join(ROOT, 'test/docs');

/** What an example may use without importing it: the app around it, and the globals of a test runner. */
const AROUND: Readonly<Record<string, readonly string[]>> = {
  './runner.js': ['expect', 'it'],
  './world.js': [
    ...['Cart', 'Credits', 'Mailer', 'Metrics', 'OrderDto', 'PaymentClient', 'payments', 'PrismaService'],
    ...['Settings', 'SettingsModule', 'ShopModule', 'stock', 'StockRepository'],
  ],
};

/** One code block of a page as a module of its own: as it stands, and the app around it. */
export interface Example {
  /** The page that it stands on. */
  readonly page: string;
  readonly fileName: string;
  readonly source: string;
  readonly declares: readonly string[];
}

/**
 * Makes modules of code blocks. A block may use the declarations of earlier blocks of its page, and of the README. It has to
 * import everything of a package.
 */
export const examplesOf = (blocks: readonly Block[]): Example[] => {
  const examples: Example[] = [];
  for (const [at, { page, code }] of blocks.entries()) {
    // What a reader has in files of the app, the test has in one.
    const block = code.replaceAll("'./shop.module'", "'./world.js'");
    const file = ts.createSourceFile('block.ts', block, ts.ScriptTarget.ES2022, true);
    const declares = declared(file);
    const own = new Set([...declares, ...imported(file)]);
    const used = identifiers(file);
    const from = new Map<string, string>();
    for (const [home, names] of Object.entries(AROUND)) for (const name of names) from.set(name, home);
    for (const { declares: names, fileName } of examples.filter(isKnownOn(page)))
      for (const name of names) from.set(name, `./${fileName.replace(/\.ts$/, '.js')}`);
    const imports = [...used]
      .filter((name) => !own.has(name) && from.has(name))
      .map((name) => `import { ${name} } from '${from.get(name)!}';`);
    const exported = declares.filter((name) => !isExported(file, name));
    const exports = `export { ${exported.join(', ')} };`;
    examples.push({
      page,
      fileName: `${page.replace(/^docs\/|\.md$/g, '').replaceAll('/', '-')}-${at + 1}.ts`,
      source: [...imports, block, exports].join('\n'),
      declares,
    });
  }
  return examples;
};

/** Whether a reader of a page has seen an example: it stands above, or is the app of the README. */
const isKnownOn =
  (page: string) =>
  (other: Example): boolean =>
    other.page === page || other.page === 'README.md';

const declarations = (file: ts.SourceFile): { name: string; node: ts.Statement }[] =>
  file.statements.flatMap((node): { name: string; node: ts.Statement }[] => {
    if (ts.isVariableStatement(node))
      return node.declarationList.declarations.map(({ name }) => ({ name: name.getText(file), node }));
    return (ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node)) && node.name
      ? [{ name: node.name.text, node }]
      : [];
  });

const declared = (file: ts.SourceFile): string[] => declarations(file).map(({ name }) => name);

const isExported = (file: ts.SourceFile, wanted: string): boolean =>
  declarations(file).some(
    ({ name, node }) =>
      name === wanted &&
      ts.canHaveModifiers(node) &&
      ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword),
  );

const imported = (file: ts.SourceFile): string[] =>
  file.statements.flatMap((node) => {
    const names = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined;
    return names && ts.isNamedImports(names) ? names.elements.map(({ name }) => name.text) : [];
  });

const identifiers = (file: ts.SourceFile): Set<string> => {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) found.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
};

const compilerOptions = (): ts.CompilerOptions => {
  const path = join(ROOT, 'tsconfig.json');
  const { config } = ts.readConfigFile(path, (name) => ts.sys.readFile(name)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(path));
  // Examples leave out what they do with their arguments, and mix types and values in imports.
  const paths = { ...options.paths, '@nestjs/config': ['./test/docs/nestjs-config.ts'] };
  return { ...options, paths, noUnusedLocals: false, noUnusedParameters: false, isolatedModules: false };
};

/** A program of the examples and of the library they use. */
export const programOf = (examples: readonly Example[]): ts.Program => {
  const options = compilerOptions();
  const host = ts.createCompilerHost(options);
  const sources = new Map(examples.map(({ fileName, source }) => [join(FOLDER, fileName), source]));
  const { fileExists, readFile } = host;
  host.fileExists = (name) => sources.has(name) || fileExists(name);
  host.readFile = (name) => sources.get(name) ?? readFile(name);
  const { getSourceFile } = host;
  host.getSourceFile = (name, language, ...rest) => {
    const source = sources.get(name);
    return source === undefined
      ? getSourceFile(name, language, ...rest)
      : ts.createSourceFile(name, source, language, true);
  };
  return ts.createProgram(
    [
      ...sources.keys(),
      join(ROOT, 'lib/index.ts'),
      join(ROOT, 'lib/entries/testing.ts'),
      join(ROOT, 'lib/entries/mysql.ts'),
      join(ROOT, 'lib/entries/opentelemetry.ts'),
      join(ROOT, 'lib/entries/postgres.ts'),
      join(ROOT, 'lib/entries/zookeeper.ts'),
    ],
    options,
    host,
  );
};

/** What the compiler has to say about the examples, in words. */
export const complaints = (program: ts.Program, examples: readonly Example[]): string[] =>
  examples.flatMap(({ fileName }) => {
    const file = program.getSourceFile(join(FOLDER, fileName));
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(
      ({ messageText, start = 0 }) => {
        const line = file?.text.slice(file.text.lastIndexOf('\n', start) + 1).split('\n')[0];
        return `${fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}\n  ${line}`;
      },
    );
  });

/** The public members of an interface or class of the library. */
const propertiesOf = (program: ts.Program, file: string, name: string): ts.Symbol[] => {
  const statement = program
    .getSourceFile(join(ROOT, file))
    ?.statements.filter((node) => ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node))
    .find((node) => node.name?.text === name);
  if (!statement) throw new Error(`${file} has no ${name}`);
  return program
    .getTypeChecker()
    .getTypeAtLocation(statement)
    .getProperties()
    .filter((member) => !isInternal(member));
};

/** Their names. */
export const membersOf = (program: ts.Program, file: string, name: string): string[] =>
  propertiesOf(program, file, name).map((member) => member.name);

/** The names of what one member of an interface of the library has. */
export const fieldsOf = (program: ts.Program, file: string, name: string, member: string): string[] => {
  const checker = program.getTypeChecker();
  const found = propertiesOf(program, file, name).find((one) => one.name === member);
  if (!found) throw new Error(`${name} has no ${member}`);
  return checker
    .getTypeOfSymbol(found)
    .getProperties()
    .map((property) => property.name);
};

const isInternal = (member: ts.Symbol): boolean => {
  const declaration = member.valueDeclaration;
  if (!declaration) return false;
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (
    member.name.startsWith('__@') || // a symbol, such as that of `await using`
    member.name.startsWith('#') ||
    (ts.getCombinedModifierFlags(declaration) & hidden) !== 0 ||
    ts.getJSDocTags(declaration).some(({ tagName }) => tagName.text === 'internal')
  );
};

/** The members of a union of string literals of the library. */
export const literalsOf = (program: ts.Program, file: string, name: string): string[] => {
  const checker = program.getTypeChecker();
  const statement = program
    .getSourceFile(join(ROOT, file))
    ?.statements.find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === name);
  if (!statement) throw new Error(`${file} has no type ${name}`);
  const type = checker.getTypeAtLocation(statement);
  return (type.isUnion() ? type.types : [type]).map((member) =>
    String((member as ts.StringLiteralType).value),
  );
};

type Exports = Record<string, unknown>;
type Body = (require: (name: string) => unknown, exports: Exports) => Promise<void>;

// The constructor of async functions has no name of its own.
const AsyncFunction = Object.getPrototypeOf(async () => undefined) as {
  constructor: new (...parameters: string[]) => Body;
};

/** Runs one example. `modules` has what it may import. */
export const run = async (source: string, modules: Readonly<Record<string, unknown>>): Promise<Exports> => {
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.CommonJS,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  const exports: Exports = {};
  const require = (name: string): unknown => {
    if (!(name in modules)) throw new Error(`an example imports ${name}, which the test does not provide`);
    return modules[name];
  };
  await new AsyncFunction.constructor('require', 'exports', outputText)(require, exports);
  return exports;
};
