import { createServer, type Socket } from 'node:net';
import { listenOnFreePort } from '../../support/loopback.js';
import { workerChannel } from '../../support/worker-channel.js';
import { HistoryWriter } from '../history/history-file.js';
import { labNow } from '../history/lab-clock.js';
import { lineReader, Register, type RegisterRequest } from './protocol.js';

// The resource that the locks protect, in a process of its own: nothing that happens to workers or Redis harms it.
// It writes down every request, in the order in which it decided.

export type ToRegister = { readonly type: 'none' };
export type FromRegister = { readonly type: 'listening'; readonly port: number };

const [path] = process.argv.slice(2);
const history = new HistoryWriter(path!);
const register = new Register();
const sockets = new Set<Socket>();

const reply = (socket: Socket, line: string): void => {
  const request = JSON.parse(line) as RegisterRequest;
  const reply = register.handle(request);
  const { what, key, lease, token, base } = request;
  const { accepted, version } = reply;
  history.write({ type: 'register', at: labNow(), what, key, lease, token, accepted, base, version });
  socket.write(`${JSON.stringify(reply)}\n`);
};

const server = createServer((socket) => {
  sockets.add(socket);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('close', () => sockets.delete(socket));
  socket.on(
    'data',
    lineReader((line) => reply(socket, line)),
  );
});

const channel = workerChannel<ToRegister, FromRegister>(() => {
  server.close();
  for (const socket of sockets) socket.destroy();
});
channel.send({ type: 'listening', port: await listenOnFreePort(server) });
