/** What a statement does to its transaction and to the data. */
export type StatementKind = 'begin' | 'commit' | 'rollback' | 'read' | 'write';

const SPACE_AND_COMMENTS = /^(?:\s|\(|--[^\n]*\n|\/\*[^]*?\*\/)*/;

const BY_WORD: readonly (readonly [RegExp, StatementKind])[] = [
  [/^(begin|start)\b/i, 'begin'],
  [/^(commit|end)\b/i, 'commit'],
  [/^rollback\s+(work\s+|transaction\s+)?to\b/i, 'read'],
  [/^(rollback|abort)\b/i, 'rollback'],
  [/^with\b[^]*\b(insert|update|delete|merge)\b/i, 'write'],
  [/^(select|with|values|table|show|explain|describe|desc|pragma|set|reset|use)\b/i, 'read'],
  [/^(savepoint|release|lock|unlock|listen|unlisten|discard|deallocate|fetch|close)\b/i, 'read'],
];

/** Returns what a statement does. An unknown statement counts as a write. */
export const kindOfStatement = (sql: string): StatementKind => {
  const text = sql.replace(SPACE_AND_COMMENTS, '');
  return BY_WORD.find(([pattern]) => pattern.test(text))?.[1] ?? 'write';
};

/** Statements of the methods by which `mysql2` begins and ends transactions. */
export const CONTROL_METHODS = { beginTransaction: 'BEGIN', commit: 'COMMIT', rollback: 'ROLLBACK' } as const;

/**
 * Returns the SQL of a call that returns a promise. Undefined for other forms: with a callback, for a stream, or not for
 * SQL.
 */
export const sqlOf = (args: readonly unknown[]): string | undefined => {
  if (typeof args.at(-1) === 'function') return undefined;
  const [first] = args;
  if (typeof first === 'string') return first;
  if (typeof first !== 'object' || first === null || 'submit' in first) return undefined;
  const { sql, text } = first as { readonly sql?: unknown; readonly text?: unknown };
  return [sql, text].find((one) => typeof one === 'string');
};
