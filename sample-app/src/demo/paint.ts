import { styleText } from 'node:util';

// One format each: with several, Node 20 does not check whether the stream has colours.
const STYLES = { head: 'bold', name: 'cyan', good: 'green', bad: 'red', aside: 'dim' } as const;

/** Colours a text, or returns it as it is. */
export type Paint = (style: keyof typeof STYLES, text: string) => string;

/** Returns colours for a terminal. A pipe gets none, and `NO_COLOR` disables them. */
export const paintFor =
  (stream: NodeJS.WritableStream): Paint =>
  (style, text) =>
    styleText(STYLES[style], text, { stream });

export const plain: Paint = (_style, text) => text;
