import { workerChannel } from '../support/worker-channel.js';

export interface FromVersions {
  readonly type: 'versions';
  readonly node: string;
  /** The file that an import of ioredis loads. */
  readonly ioredis: string;
}

workerChannel<never, FromVersions>().send({
  type: 'versions',
  node: process.versions.node,
  ioredis: import.meta.resolve('ioredis'),
});
