// node --import ./test/support/typescript/register.mjs some.ts
//
// `nest-redis-lock` is the built package here, as its users get it: run `npm run build` first.
import { register } from 'node:module';

register('./hooks.mjs', import.meta.url);
