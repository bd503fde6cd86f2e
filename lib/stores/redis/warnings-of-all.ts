/** What one of the servers warns of. */
export interface WarningsOfOne {
  /** What tells it from the others; undefined where there is only one. */
  readonly name: string | undefined;
  readonly warnings: readonly string[];
}

/** Each warning once, and with the servers that it is about where the others do not warn of the same. */
export const warningsOfAll = (told: readonly WarningsOfOne[]): readonly string[] => {
  const about = new Map<string, (string | undefined)[]>();
  for (const { name, warnings } of told) {
    for (const warning of warnings) about.set(warning, [...(about.get(warning) ?? []), name]);
  }
  return [...about].map(([warning, names]) =>
    names.length === told.length ? warning : `${names.join(', ')}: ${warning}`,
  );
};
