import { PGlite } from '@electric-sql/pglite';
import { runPart } from '../part-process.js';
import { PgliteServer } from '../postgres/pglite-server.js';

await runPart(async () => {
  const port = await new PgliteServer(await PGlite.create()).listen();
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
});
