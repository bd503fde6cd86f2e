import { appendFileSync } from 'node:fs';

export const resolve = (specifier, context, next) => {
  if (context.parentURL?.includes('/node_modules/nest-redis-lock/')) {
    appendFileSync(process.env.IMPORTS_FILE, `${specifier}\n`);
  }
  return next(specifier, context);
};
