import { readdirSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { execute } from '../../support/package/command.js';
import { packLibrary, repository } from '../../support/package/pack.js';
import { guardFolder } from '../../support/process-guard.js';

/** What an editor shows for one place of a program. */
export interface Hover {
  /** The declaration, such as `(property) waitMs?: number`. */
  readonly signature: string;
  /** Its documentation, with the tags. */
  readonly docs: string;
}

/** Stands before each place of a program that a test asks about. */
const MARK = '▸';

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  noEmit: true,
  types: ['node'],
};

/** The declarations of the packed library, as the compiler and the editor of an app see them. */
export class PackedTypes implements AsyncDisposable {
  private readonly root: string;
  private readonly file: string;
  private program = '';
  private version = 0;
  private readonly editor: ts.LanguageService;

  private constructor(private readonly folder: string) {
    this.root = join(folder, 'package');
    this.file = join(this.root, 'app.ts');
    const declarations = join(this.root, 'dist', 'esm');
    const entries = readdirSync(declarations)
      .filter((name) => name.endsWith('.d.ts'))
      .map((name) => join(declarations, name));
    this.editor = ts.createLanguageService({
      ...ts.sys,
      getCompilationSettings: () => OPTIONS,
      getScriptFileNames: () => [...entries, this.file],
      getScriptVersion: (name) => (name === this.file ? String(this.version) : '0'),
      getScriptSnapshot: (name) => {
        const text = name === this.file ? this.program : ts.sys.readFile(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => this.root,
      getDefaultLibFileName: ts.getDefaultLibFilePath,
      useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
      fileExists: (name) => name === this.file || ts.sys.fileExists(name),
    });
  }

  static async unpack(): Promise<PackedTypes> {
    const folder = await mkdtemp(join(tmpdir(), 'nest-redis-lock-types-'));
    guardFolder(folder);
    const { file } = await packLibrary(folder);
    await execute('tar', ['-xzf', file], { cwd: folder, timeoutMs: 60_000 });
    await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package', 'app.ts'), '');
    return new PackedTypes(folder);
  }

  /** What the compiler says about the declarations themselves, which apps with `skipLibCheck: false` see. */
  complaints(): readonly string[] {
    const program = this.editor.getProgram()!;
    return this.declarations().flatMap((source) =>
      [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
        ({ messageText }) => `${this.nameOf(source)}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
      ),
    );
  }

  /** The declaration files that contain a text. */
  filesWith(text: string): readonly string[] {
    return this.declarations()
      .filter((source) => source.text.includes(text))
      .map((source) => this.nameOf(source));
  }

  /** The public members of each exported class, static ones too, in alphabetical order; not what it inherits from other packages. */
  members(): Readonly<Record<string, readonly string[]>> {
    const program = this.editor.getProgram()!;
    const checker = program.getTypeChecker();
    const entries = program.getRootFileNames().map((name) => program.getSourceFile(name)!);
    const exported = entries.flatMap((source) => {
      const module = checker.getSymbolAtLocation(source);
      return module ? checker.getExportsOfModule(module) : [];
    });
    const shown = (type: ts.Type): string[] =>
      checker
        .getPropertiesOfType(type)
        .filter((member) => this.isPublic(member))
        .map(({ name }) => name.replace(/^__@(.*)@\d+$/, '[$1]'));
    return Object.fromEntries(
      exported.flatMap((symbol) => {
        const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
        const type = checker.getDeclaredTypeOfSymbol(target);
        if (!type.isClass()) return [];
        return [[symbol.name, [...shown(checker.getTypeOfSymbol(type.symbol)), ...shown(type)].sort()]];
      }),
    );
  }

  /** The names of all tags in the documentation of the declarations. */
  tags(): ReadonlySet<string> {
    const names = new Set<string>();
    const visit = (node: ts.Node): void => {
      for (const doc of ts.getJSDocCommentsAndTags(node)) {
        if (ts.isJSDoc(doc)) for (const { tagName } of doc.tags ?? []) names.add(tagName.text);
      }
      ts.forEachChild(node, visit);
    };
    this.declarations().forEach(visit);
    return names;
  }

  /** What is shown for each marked place of a program, in their order. The program has to compile. */
  hovers(marked: string): readonly Hover[] {
    const [first = '', ...rest] = marked.split(MARK);
    const places: number[] = [];
    this.program = rest.reduce((text, part) => {
      places.push(text.length);
      return text + part;
    }, first);
    this.version++;
    const wrong = this.editor.getSemanticDiagnostics(this.file);
    if (wrong.length > 0) {
      throw new Error(wrong.map((d) => ts.flattenDiagnosticMessageText(d.messageText, '\n')).join('\n'));
    }
    return places.map((place) => {
      const info = this.editor.getQuickInfoAtPosition(this.file, place);
      const tags = (info?.tags ?? []).map(({ name, text }) => `@${name} ${ts.displayPartsToString(text)}`);
      return {
        signature: ts.displayPartsToString(info?.displayParts),
        docs: [ts.displayPartsToString(info?.documentation), ...tags].join('\n').trim(),
      };
    });
  }

  private declarations(): readonly ts.SourceFile[] {
    const files = this.editor.getProgram()!.getSourceFiles();
    return files.filter(({ fileName }) => fileName.startsWith(`${this.root}/dist/`));
  }

  private nameOf({ fileName }: ts.SourceFile): string {
    return fileName.slice(this.root.length + 1);
  }

  private isPublic({ name, declarations: [declaration] = [] }: ts.Symbol): boolean {
    if (!declaration?.getSourceFile().fileName.startsWith(this.root) || name.includes('#')) return false;
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
    return (ts.getCombinedModifierFlags(declaration) & hidden) === 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.editor.dispose();
    await rm(this.folder, { recursive: true, force: true });
  }
}
