import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));
const EXPECTATION = /^\s*\/\/ @ts-expect-error (.+)$/;

/** What a case file says about a line: the code after it must not compile, with this in the message. */
interface Expectation {
  readonly line: number;
  readonly text: string;
}

/** What the compiler said about a line. */
interface Complaint {
  readonly line: number;
  readonly text: string;
}

/** What is wrong with a case file, in sentences; empty when everything is as it says. */
export type Findings = readonly string[];

const settings = (): ts.CompilerOptions => {
  const { config } = ts.readConfigFile(`${root}/tsconfig.json`, ts.sys.readFile) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [] }, ts.sys, root);
  return options;
};

const expectationsOf = (file: string): Expectation[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((content, line) => {
      const text = EXPECTATION.exec(content)?.[1];
      return text === undefined ? [] : [{ line: line + 1, text }];
    });

/**
 * Compiles case files with the settings of the repository, and `more`. Where a file says `// @ts-expect-error <words>`, the next
 * line must not compile, and the compiler must say these words; everything else must compile. The plain directive
 * would accept any error, such as one in a typing mistake of the case itself.
 */
export const checkTypes = (
  files: readonly string[],
  more: ts.CompilerOptions = {},
): ReadonlyMap<string, Findings> => {
  const options = { ...settings(), ...more };
  const host = ts.createCompilerHost(options);
  const read = host.readFile.bind(host);
  host.readFile = (name) =>
    files.includes(name) ? read(name)?.replaceAll('@ts-expect-error', 'refused:') : read(name);
  const program = ts.createProgram(files, options, host);
  const global = [...program.getGlobalDiagnostics(), ...program.getOptionsDiagnostics()].map(textOf);
  return new Map(files.map((file) => [file, [...global, ...findings(program, file)]]));
};

const textOf = ({ messageText }: ts.Diagnostic): string => ts.flattenDiagnosticMessageText(messageText, '\n');

const complaintsAbout = (program: ts.Program, file: string): Complaint[] => {
  const source = program.getSourceFile(file);
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((d) => ({
    line: source!.getLineAndCharacterOfPosition(d.start ?? 0).line,
    text: textOf(d),
  }));
};

const findings = (program: ts.Program, file: string): string[] => {
  const complaints = complaintsAbout(program, file);
  const expectations = expectationsOf(file);
  const unmet = expectations.flatMap(({ line, text }) => {
    const said = complaints.filter((complaint) => complaint.line === line);
    if (said.length === 0) return [`line ${line + 1} compiles, but should not: ${text}`];
    if (said.some((complaint) => complaint.text.includes(text))) return [];
    return [
      `line ${line + 1} should be refused with "${text}", but was with: ${said.map((c) => c.text).join('; ')}`,
    ];
  });
  const surprising = complaints.filter(
    ({ line }) => !expectations.some((expected) => expected.line === line),
  );
  return [...unmet, ...surprising.map(({ line, text }) => `line ${line + 1} does not compile: ${text}`)];
};
