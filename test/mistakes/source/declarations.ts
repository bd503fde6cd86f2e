import ts from 'typescript';

/** Where in a file something is declared. Of a script it is the text of the script. */
export interface Declaration {
  readonly name: string;
  readonly language: 'TypeScript' | 'Lua';
  readonly start: number;
  readonly end: number;
}

const parse = (source: string): ts.SourceFile =>
  ts.createSourceFile('source.ts', source, ts.ScriptTarget.ES2022, true);

/** The template literal that a constant is, if it is one. */
const templateOf = (node: ts.Node): ts.TemplateLiteral | undefined => {
  const { initializer } = node as ts.VariableDeclaration | ts.PropertyDeclaration;
  if (!initializer) return undefined;
  const value = ts.isTaggedTemplateExpression(initializer) ? initializer.template : initializer;
  return ts.isTemplateLiteral(value) ? value : undefined;
};

const declared = (name: string, node: ts.Node): Declaration => {
  const script =
    ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) ? templateOf(node) : undefined;
  return script
    ? { name, language: 'Lua', start: script.getStart() + 1, end: script.end - 1 }
    : { name, language: 'TypeScript', start: node.getStart(), end: node.end };
};

const membersOf = (declaration: ts.ClassDeclaration): Declaration[] => {
  const owner = declaration.name?.text;
  return declaration.members.flatMap((member) => {
    // A signature that is overloaded has no body, and is no place for a mistake.
    if (ts.isConstructorDeclaration(member))
      return member.body ? [declared(`${owner}.constructor`, member)] : [];
    if (!member.name || (ts.isMethodDeclaration(member) && !member.body)) return [];
    return [declared(`${owner}.${member.name.getText()}`, member)];
  });
};

/** All functions, constants and classes of a file, and the members of its classes. */
export const declarationsIn = (source: string): Declaration[] =>
  parse(source).statements.flatMap((statement) => {
    if (ts.isFunctionDeclaration(statement) && statement.name && statement.body) {
      return [declared(statement.name.text, statement)];
    }
    if (ts.isClassDeclaration(statement) && statement.name) {
      return [declared(statement.name.text, statement), ...membersOf(statement)];
    }
    if (!ts.isVariableStatement(statement)) return [];
    return statement.declarationList.declarations.map((one) => declared(one.name.getText(), one));
  });
