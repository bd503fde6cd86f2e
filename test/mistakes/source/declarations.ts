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

/** What a constant or a property is set to, without what only the compiler reads. */
const valueOf = (node: ts.Node): ts.Expression | undefined => {
  const hasValue =
    ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node);
  let value = hasValue ? node.initializer : undefined;
  while (value && (ts.isAsExpression(value) || ts.isSatisfiesExpression(value))) value = value.expression;
  return value;
};

/** The script that something is, as a template literal: by itself, tagged, or handed to a constructor or a function. */
const scriptOf = (value: ts.Expression | undefined): ts.TemplateLiteral | undefined => {
  if (value && ts.isTaggedTemplateExpression(value)) return value.template;
  const made =
    value && (ts.isNewExpression(value) || ts.isCallExpression(value)) ? value.arguments?.[0] : value;
  return made && ts.isTemplateLiteral(made) ? made : undefined;
};

const declared = (name: string, node: ts.Node): Declaration => {
  const script = scriptOf(valueOf(node));
  return script
    ? { name, language: 'Lua', start: script.getStart() + 1, end: script.end - 1 }
    : { name, language: 'TypeScript', start: node.getStart(), end: node.end };
};

/** A constant, and what is in it if it is an object. */
const constant = (declaration: ts.VariableDeclaration): Declaration[] => {
  const name = declaration.name.getText();
  const value = valueOf(declaration);
  const properties = value && ts.isObjectLiteralExpression(value) ? value.properties : [];
  return [
    declared(name, declaration),
    ...properties.flatMap((one) => (one.name ? [declared(`${name}.${one.name.getText()}`, one)] : [])),
  ];
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

/** All functions, constants and classes of a file, and the members of its classes and objects. */
export const declarationsIn = (source: string): Declaration[] =>
  parse(source).statements.flatMap((statement) => {
    if (ts.isFunctionDeclaration(statement) && statement.name && statement.body) {
      return [declared(statement.name.text, statement)];
    }
    if (ts.isClassDeclaration(statement) && statement.name) {
      return [declared(statement.name.text, statement), ...membersOf(statement)];
    }
    if (!ts.isVariableStatement(statement)) return [];
    return statement.declarationList.declarations.flatMap(constant);
  });
