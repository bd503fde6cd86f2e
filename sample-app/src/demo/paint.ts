import { styleText } from 'node:util';

// One format each: of several, Node 20 does not ask the stream whether it has colours.
const STYLES = { head: 'bold', name: 'cyan', good: 'green', bad: 'red', aside: 'dim' } as const;

/** Gives a text a colour, or leaves it as it is. */
export type Paint = (style: keyof typeof STYLES, text: string) => string;

/** Colours for a terminal. A pipe gets none, and nothing does with `NO_COLOR`. */
export const paintFor =
  (stream: NodeJS.WritableStream): Paint =>
  (style, text) =>
    styleText(STYLES[style], text, { stream });

export const plain: Paint = (_style, text) => text;
