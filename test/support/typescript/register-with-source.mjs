// As register.mjs, but `nest-redis-lock` is the source in lib/, as it is in vitest: no build is needed.
import { register } from 'node:module';

const source = (path) => new URL(`../../../lib/${path}`, import.meta.url).href;

register('./hooks.mjs', import.meta.url, {
  data: {
    aliases: {
      'nest-redis-lock': source('index.ts'),
      'nest-redis-lock/redis': source('redis/index.ts'),
      'nest-redis-lock/store': source('store/index.ts'),
      'nest-redis-lock/testing': source('testing/index.ts'),
    },
  },
});
