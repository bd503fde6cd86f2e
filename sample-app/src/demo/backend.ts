/** Server that the demo uses: its address, and its description. */
export interface Backend {
  readonly url: string;
  readonly description: string;
}
