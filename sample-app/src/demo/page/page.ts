import type { Board } from '../live/board.js';
import type { Actions } from './actions.js';
import type { PageFile } from './page-files.js';

/** Injection token of {@link Page}. */
export const PAGE = Symbol('PAGE');

/** What the page is made of. */
export interface Page {
  readonly board: Board;
  /** What the buttons do; undefined without buttons. */
  readonly actions?: Actions;
  /** Secret in the address. */
  readonly token: string;
  readonly files: ReadonlyMap<string, PageFile>;
}
