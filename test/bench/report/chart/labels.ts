export interface Label {
  /** Where it would like to be. */
  readonly wanted: number;
}

/** Moves labels apart that would overlap, as little as can be, within the limits. In the order of what they want. */
export const spreadOut = <L extends Label>(
  labels: readonly L[],
  gap: number,
  top: number,
  bottom: number,
): readonly { readonly label: L; readonly y: number }[] => {
  const placed = [...labels]
    .sort((a, b) => a.wanted - b.wanted)
    .map((label) => ({ label, y: Math.max(top, Math.min(bottom, label.wanted)) }));
  for (let i = 1; i < placed.length; i++) placed[i]!.y = Math.max(placed[i]!.y, placed[i - 1]!.y + gap);
  const over = (placed.at(-1)?.y ?? 0) - bottom;
  if (over > 0) {
    placed.at(-1)!.y = bottom;
    for (let i = placed.length - 2; i >= 0; i--)
      placed[i]!.y = Math.min(placed[i]!.y, placed[i + 1]!.y - gap);
  }
  return placed;
};
