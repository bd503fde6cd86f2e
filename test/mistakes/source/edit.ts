/** What somebody would have written wrong in one declaration of lib/core or lib/stores, wherever that is. */
export interface Edit {
  /** Where: a function, a constant (also one that is a script), or a member of a class or of an object, `Owner.member`.
   * With `file:` before it where several files have that name. */
  readonly in: string;
  /** What is there now, exactly once. White space, comments and commas before a closing bracket do not count. */
  readonly find: string;
  /** What is there instead. */
  readonly replace: string;
}
