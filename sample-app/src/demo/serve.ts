import { once } from 'node:events';
import type { Board } from './live/board.js';
import { Director } from './live/director.js';
import type { Narrator } from './narrator.js';
import type { DemoOptions } from './options.js';
import type { Buttons } from './page/actions.js';
import type { Stage } from './stage.js';

const SKU = 'sneaker';

export interface ServeOptions {
  /** Address of the page, and its buttons. */
  readonly page: string;
  readonly buttons: Buttons;
  readonly stage: Stage;
  readonly board: Board;
  readonly narrator: Narrator;
  readonly signal: AbortSignal;
}

/** Keeps the app and the page running until the signal aborts. */
export const serve = async (
  { page, buttons, stage, board, narrator, signal }: ServeOptions,
  { items, buyers, instances, strategies: [strategy = 'locked'] }: DemoOptions,
): Promise<void> => {
  await stage.sales.putOnSale(SKU, items);
  const director = new Director({ stage, board, items, buyers, instances, signal });
  buttons.connect(director);
  const apps = await narrator.during('starting the instances', director.start(strategy));
  board.open({ strategy, items, clicks: 0 });
  const urls = apps.map((url) => `${url}/flash-sale/${SKU}`);
  narrator.say(`
Open the page, and stop and kill instances there:
${page}

The sale of ${items} pieces of "${SKU}" is open, with the strategy "${strategy}", at
${urls.map((url) => `  ${url}`).join('\n')}

  curl ${urls[0]}
  curl -i -X POST -H 'content-type: application/json' -d '{"userId":"ada"}' \\
    ${urls.at(-1)}/orders

Ctrl-C ends it.`);
  if (!signal.aborted) await Promise.race([once(signal, 'abort'), director.failed]);
  await director.end();
};
