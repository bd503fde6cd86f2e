import { it } from 'vitest';
import { TestWorker } from '../../support/worker.js';
import { Lab } from './lab.js';
it('x', async () => {
  await using lab = await Lab.start();
  const shop = lab.track(TestWorker.start<any, any>(new URL('../workers/shop.worker.ts', import.meta.url), { args: [lab.server.url] }));
  const t = performance.now(); const say = (w: string) => console.log(w, Math.round(performance.now()-t));
  const { url } = await shop.next('listening'); say('up');
  const working = fetch(`${url}/orders/7`);
  await shop.next('working'); say('working');
  const l = await lab.open().locks.acquire('order:8'); const waiting = fetch(`${url}/orders/8`); await lab.waiting('order:8'); say('waiting');
  const ending = shop.kill('SIGTERM');
  const r = await waiting; say('refused'); await r.text(); say('refused read');
  shop.send({ type: 'finish work' });
  await (await working).text(); say('answer'); await new Promise(r => setTimeout(r, 0));
  await ending; say('end'); console.log(shop.output);
});
