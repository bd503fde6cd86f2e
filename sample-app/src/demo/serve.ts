import { once } from 'node:events';
import type { DemoOptions } from './options.js';
import type { Narrator } from './narrator.js';
import type { Stage } from './stage.js';

const SKU = 'sneaker';

/** Keeps the app running until the signal aborts. */
export const serve = async (
  stage: Stage,
  { items, instances, strategies: [strategy = 'locked'] }: DemoOptions,
  narrator: Narrator,
  signal: AbortSignal,
): Promise<void> => {
  await stage.sales.putOnSale(SKU, items);
  const names = stage.instanceNames(instances);
  const starting = Promise.all(names.map((name) => stage.startInstance(name, strategy, false)));
  const apps = await narrator.during('starting the instances', starting);
  const urls = apps.map(({ url }) => `${url}/flash-sale/${SKU}`);
  narrator.say(`
The sale of ${items} pieces of "${SKU}" is open, with the strategy "${strategy}", at
${urls.map((url) => `  ${url}`).join('\n')}

  curl ${urls[0]}
  curl -i -X POST -H 'content-type: application/json' -d '{"userId":"ada"}' \\
    ${urls.at(-1)}/orders

Ctrl-C ends it.`);
  if (!signal.aborted) await once(signal, 'abort');
};
