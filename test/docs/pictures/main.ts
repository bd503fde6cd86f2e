// npm run docs:pictures: draws the pictures of the pages, with the defaults of the library, into docs/pictures. With
// `-- --record` it first records the metrics that the dashboard shows, which takes ten minutes.
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { draw } from './draw.js';
import { record } from './record.js';

const folder = fileURLToPath(new URL('../../../docs/pictures/', import.meta.url));

if (process.argv.includes('--record'))
  await record(fileURLToPath(new URL('./metrics.json', import.meta.url)));
await mkdir(folder, { recursive: true });
for (const [file, svg] of await draw()) await writeFile(`${folder}${file}`, svg);
