/** What a statement does to its transaction and to the data. `several`: more than one, with the end of a transaction. */
export type StatementKind =
  'begin' | 'commit' | 'rollback' | 'savepoint' | 'release' | 'rollback to' | 'read' | 'write' | 'several';

/** A statement: what it does, and the name of its savepoint. */
export interface Statement {
  readonly kind: StatementKind;
  /** Whether its text has several statements. */
  readonly isSeveral?: boolean;
  readonly savepoint?: string | undefined;
}

// MySQL executes comments with an exclamation mark.
const SPACE_AND_COMMENTS = /^(?:\s|\(|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*(?!M?!)[^]*?\*\/)*/;

/** Text that databases read in different ways: where a string or a comment ends is uncertain. */
const UNCERTAIN = /[\\#]|--(?=\S)|\/\*M?!|\$\w*\$/;
const STRINGS_AND_COMMENTS = /'[^']*'|"[^"]*"|`[^`]*`|--[^\n]*|\/\*[^]*?\*\//g;

const ROW_LOCK = /\bfor\s+(no\s+key\s+)?update\b/gi;
const WRITING =
  /\b(insert|update|delete|merge|replace\s+into|into)\b|^explain\b.*\banaly[sz]e\b.*\bexecute\b|\/\*M?!/is;

const NAMED: readonly (readonly [RegExp, StatementKind])[] = [
  [/^savepoint\s+(\S+)$/i, 'savepoint'],
  [/^release\s+(?:savepoint\s+)?(\S+)$/i, 'release'],
  [/^rollback\s+(?:work\s+|transaction\s+)?to\s+(?:savepoint\s+)?(\S+)$/i, 'rollback to'],
];

const BY_WORD: readonly (readonly [RegExp, StatementKind])[] = [
  [/^(begin|start\s+transaction)\b/i, 'begin'],
  // Afterwards another connection ends the transaction: its writes count as committed.
  [/^prepare\s+transaction\b/i, 'commit'],
  [/^commit\s+prepared\b/i, 'write'],
  // MySQL commits the open transaction.
  [/^lock\s+tables\b/i, 'commit'],
  [/^(commit|end)\b/i, 'commit'],
  [/^rollback\s+(work\s+|transaction\s+)?to\b/i, 'rollback to'],
  [/^(rollback|abort)\b/i, 'rollback'],
  [/^(select|with|values|table|show|explain|describe|desc|pragma|set|reset|use)\b/i, 'read'],
  [/^(savepoint|release|lock|unlock|listen|unlisten|discard|deallocate|fetch|close)\b/i, 'read'],
];

const CONTROL = '(begin|start\\s+transaction|commit|end|rollback|abort|prepare\\s+transaction)\\b';
const CONTROL_ANYWHERE = new RegExp(`\\b${CONTROL}`, 'i');
const CONTROL_FIRST = new RegExp(`(^|;)[\\s(]*${CONTROL}`, 'i');

/** Returns what a statement does. Whatever is not certainly a single read counts as a write. */
export const statementOf = (sql: string): Statement => {
  const text = sql.replace(SPACE_AND_COMMENTS, '').replace(/[\s;]+$/, '');
  const isUncertain = UNCERTAIN.test(text);
  const plain = isUncertain
    ? text
    : text.replace(STRINGS_AND_COMMENTS, (part) => (/^[-/]/.test(part) ? ' ' : part[0]! + part[0]!));
  if (/;\s*[^\s;]/.test(plain))
    return {
      kind: (isUncertain ? CONTROL_ANYWHERE : CONTROL_FIRST).test(plain) ? 'several' : 'write',
      isSeveral: true,
    };
  for (const [pattern, kind] of NAMED) {
    const name = pattern.exec(text)?.[1];
    if (name !== undefined) return { kind, savepoint: name.replace(/["'`]/g, '').toLowerCase() };
  }
  const kind = BY_WORD.find(([pattern]) => pattern.test(text))?.[1] ?? 'write';
  return { kind: kind === 'read' && WRITING.test(plain.replace(ROW_LOCK, '')) ? 'write' : kind };
};

/** Statements of the methods by which `mysql2` begins and ends transactions. */
export const CONTROL_METHODS = { beginTransaction: 'BEGIN', commit: 'COMMIT', rollback: 'ROLLBACK' } as const;

/** Returns the SQL of a call. Undefined for a call that has none. */
export const sqlOf = ([first]: readonly unknown[]): string | undefined => {
  if (typeof first === 'string') return first;
  if (typeof first !== 'object' || first === null) return undefined;
  const { sql, text, name } = first as Readonly<Record<'sql' | 'text' | 'name', unknown>>;
  const given = [sql, text].find((one) => typeof one === 'string');
  // A statement that was prepared before, by its name.
  return given ?? (typeof name === 'string' ? `EXECUTE ${name}` : undefined);
};

/** Returns whether a call gives its result to a callback or a stream, and not to a promise. */
export const isUnwatchable = (args: readonly unknown[]): boolean => {
  const [first] = args;
  return (
    typeof args.at(-1) === 'function' || (typeof first === 'object' && first !== null && 'submit' in first)
  );
};
