export interface WarningsOfOne {
  /** Name that distinguishes the server; undefined when there is only one. */
  readonly name: string | undefined;
  readonly warnings: readonly string[];
}

/** Returns each warning once. A warning that not all servers give begins with the names of its servers. */
export const warningsOfAll = (replies: readonly WarningsOfOne[]): readonly string[] => {
  const about = new Map<string, (string | undefined)[]>();
  for (const { name, warnings } of replies) {
    for (const warning of warnings) about.set(warning, [...(about.get(warning) ?? []), name]);
  }
  return [...about].map(([warning, names]) =>
    names.length === replies.length ? warning : `${names.join(', ')}: ${warning}`,
  );
};
