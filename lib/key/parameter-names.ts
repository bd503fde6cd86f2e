import { parse } from 'acorn';
import type {
  ArrowFunctionExpression,
  ClassBody,
  Expression,
  FunctionExpression,
  Node,
  Pattern,
  Program,
} from 'acorn';

/** One parameter of a method, at its index. */
export interface Parameter {
  /** Undefined for a destructured parameter. */
  readonly name: string | undefined;
  /** True for `...rest`, and for the unnamed rest of a method that reads `arguments`. */
  readonly rest: boolean;
  /** Local names of a destructured parameter, each with its path inside the argument. */
  readonly paths?: ReadonlyMap<string, string>;
}

type AnyFunction = (...args: never[]) => unknown;
type Method = FunctionExpression | ArrowFunctionExpression;
type MethodTable = ReadonlyMap<string, readonly Parameter[]>;

// Only a memo: the source text of a class never changes, so two apps in one process cannot disagree about it.
const methodTables = new WeakMap<object, MethodTable>();

/**
 * Returns the parameters of a method; undefined when they cannot be read. It reads the source text of the class first:
 * that has the names even if another decorator or a Proxy has wrapped the method. If the class does not show the method
 * (a computed name, a class compiled to ES5), it reads the text of the method.
 *
 * A minified bundle has other names than the source file. Use `<<0>>` or a key function there: a short name such as `n`
 * could even be the name of another parameter.
 *
 * @param owner the class whose prototype has the method: `target.constructor` in a decorator
 * @param methodName its name, as the decorator gets it
 * @param method the function, which may already be wrapped
 */
export function parameterNames(
  owner: unknown,
  methodName: string | symbol,
  method: unknown,
): readonly Parameter[] | undefined {
  const fromClass =
    typeof owner === 'function' && typeof methodName === 'string'
      ? methodTable(owner as AnyFunction).get(methodName)
      : undefined;
  return fromClass ?? (typeof method === 'function' ? functionParameters(method as AnyFunction) : undefined);
}

/** Returns the parameters as you would write them: `(userId, {…}, ...rest)`. */
export function formatParameters(parameters: readonly Parameter[] | undefined): string {
  if (parameters === undefined) return '(unknown parameters)';
  const words = parameters.map(({ name, rest }) => (rest ? `...${name ?? ''}` : (name ?? '{…}')));
  return `(${words.join(', ')})`;
}

function methodTable(owner: AnyFunction): MethodTable {
  const known = methodTables.get(owner);
  if (known) return known;
  const source = `(${sourceOf(owner)}\n)`;
  const expression = parseExpression(source);
  const table: MethodTable =
    expression?.type === 'ClassExpression' ? readClass(expression.body, source) : new Map();
  methodTables.set(owner, table);
  return table;
}

function readClass(body: ClassBody, source: string): MethodTable {
  const table = new Map<string, readonly Parameter[]>();
  for (const member of body.body) {
    if (member.type !== 'MethodDefinition' || member.kind !== 'method' || member.static) continue;
    const name = memberName(member.key, member.computed);
    if (name !== undefined) table.set(name, readParameters(member.value, source));
  }
  return table;
}

/** Returns the property name of a class member; undefined when it is known only at run time. */
function memberName(key: Node, computed: boolean): string | undefined {
  const { type, name, value } = key as Node & { name?: string; value?: unknown };
  if (type === 'Identifier' && !computed) return name;
  if (type === 'Literal' && (typeof value === 'string' || typeof value === 'number')) return String(value);
  return undefined;
}

/** What Babel for ES5 leaves of an async method. Its names are in a function that cannot be reached. */
const FORWARDS = /^function \w*\(_x\d*\b.*\{\s*return _\w+\.apply\(this, arguments\);?\s*\}$/s;

function functionParameters(method: AnyFunction): readonly Parameter[] | undefined {
  const source = sourceOf(method);
  if (FORWARDS.test(source)) return undefined;
  // A function or arrow is an expression; a method needs a class around it, where `super` and `#x` are legal.
  const standalone = `(${source}\n)`;
  const expression = parseExpression(standalone);
  if (expression?.type === 'FunctionExpression' || expression?.type === 'ArrowFunctionExpression') {
    return readParameters(expression, standalone);
  }
  const enclosed = `(class extends Object { ${source}\n})`;
  const enclosing = parseExpression(enclosed);
  const member = enclosing?.type === 'ClassExpression' ? enclosing.body.body[0] : undefined;
  return member?.type === 'MethodDefinition' ? readParameters(member.value, enclosed) : undefined;
}

function readParameters(method: Method, source: string): readonly Parameter[] {
  const { params, body } = helperBody(method) ?? method;
  const parameters = params.map(readParameter);
  const readsArguments = source.slice(body.start, body.end).includes('arguments');
  const isClosed = !parameters.at(-1)?.rest;
  return isClosed && readsArguments ? [...parameters, { name: undefined, rest: true }] : parameters;
}

function readParameter(pattern: Pattern): Parameter {
  switch (pattern.type) {
    case 'Identifier':
      return { name: pattern.name, rest: false };
    case 'AssignmentPattern':
      return readParameter(pattern.left);
    case 'RestElement':
      return { name: readParameter(pattern.argument).name, rest: true };
    default:
      return { name: undefined, rest: false, paths: new Map(readPaths(pattern, [])) };
  }
}

/** Returns the names that a pattern declares, each with the path to its value. */
function readPaths(pattern: Pattern | null, path: readonly string[]): [string, string][] {
  switch (pattern?.type) {
    case 'Identifier':
      return [[pattern.name, path.join('.')]];
    case 'AssignmentPattern':
      return readPaths(pattern.left, path);
    case 'ArrayPattern':
      return pattern.elements.flatMap((element, i) => readPaths(element, [...path, String(i)]));
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) => {
        // A `...rest` property has no path of its own.
        if (property.type !== 'Property') return [];
        const name = memberName(property.key, property.computed);
        return name === undefined ? [] : readPaths(property.value, [...path, name]);
      });
    default:
      return [];
  }
}

/** Returns the placeholder for a parameter or a destructured name: `userId`, `0.id`; undefined for any other name. */
export function placeholderFor(name: string, parameters: readonly Parameter[]): string | undefined {
  if (parameters.some((parameter) => parameter.name === name)) return name;
  const index = parameters.findIndex(({ paths }) => paths?.has(name));
  return index === -1 ? undefined : `${index}.${parameters[index]!.paths!.get(name)}`;
}

/**
 * Returns the inner function of a lowered async method. Compilers move parameters with defaults into it, and leave
 * invented names outside: `m(a_1) { return __awaiter(this, arguments, void 0, function* (a, b = 1) { … }); }`, or with SWC
 * and Babel `m(_0) { return _async_to_generator(function* (a, b = 1) { … }).apply(this, arguments); }`.
 */
function helperBody(method: Method): Method | undefined {
  const last = method.body.type === 'BlockStatement' ? method.body.body.at(-1) : undefined;
  const call = last?.type === 'ReturnStatement' ? last.argument : undefined;
  if (call?.type !== 'CallExpression') return undefined;
  const passesArguments = call.arguments.some((a) => a.type === 'Identifier' && a.name === 'arguments');
  const { callee } = call;
  const applied =
    callee.type === 'MemberExpression' && callee.object.type === 'CallExpression' ? callee.object : call;
  const inner = applied.arguments.at(-1);
  return passesArguments && inner?.type === 'FunctionExpression' && inner.params.length > 0
    ? inner
    : undefined;
}

/** Returns the source text, also of a class with a static `toString`. */
export const sourceOf = (target: AnyFunction): string => Function.prototype.toString.call(target);

function parseExpression(source: string): Expression | undefined {
  const program = tryParse(source, 'module') ?? tryParse(source, 'script');
  const statement = program?.body[0];
  return statement?.type === 'ExpressionStatement' ? statement.expression : undefined;
}

function tryParse(source: string, sourceType: 'module' | 'script'): Program | undefined {
  try {
    return parse(source, {
      ecmaVersion: 'latest',
      sourceType,
      checkPrivateFields: false,
      allowAwaitOutsideFunction: true,
      allowSuperOutsideMethod: true,
    });
  } catch {
    return undefined; // native code, or syntax newer than the parser: the caller has another way, or reports it
  }
}
