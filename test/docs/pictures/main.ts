// npm run docs:pictures: draws the pictures of the pages, with the defaults of the library, into docs/pictures.
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { draw } from './draw.js';

const folder = fileURLToPath(new URL('../../../docs/pictures/', import.meta.url));

await mkdir(folder, { recursive: true });
for (const [file, svg] of draw()) await writeFile(`${folder}${file}`, svg);
