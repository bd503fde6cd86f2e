// As register.mjs, but `nest-redis-lock` is the source in lib/, as it is in vitest: no build is needed.
import { readdirSync } from 'node:fs';
import { register } from 'node:module';

const source = (path) => new URL(`../../../lib/${path}`, import.meta.url).href;
const subpaths = readdirSync(new URL(source('entries/'))).map((file) => file.replace(/\.ts$/, ''));

register('./hooks.mjs', import.meta.url, {
  data: {
    aliases: {
      'nest-redis-lock': source('index.ts'),
      ...Object.fromEntries(
        subpaths.map((name) => [`nest-redis-lock/${name}`, source(`entries/${name}.ts`)]),
      ),
    },
  },
});
