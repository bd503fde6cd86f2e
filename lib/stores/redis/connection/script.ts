import { createHash } from 'node:crypto';

/** A Lua script and the hash under which a server caches it. */
export class Script {
  readonly sha: string;

  constructor(readonly source: string) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }
}
