import type { Socket } from 'node:net';

/** A command with its arguments. */
export type Request = readonly string[];

/** Calls `onRequest` with each command that arrives: lists of bulk strings, as clients send them. */
export const readRequests = (socket: Socket, onRequest: (request: Request) => void): void => {
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let found = first(rest); found; found = first(rest)) {
      rest = rest.subarray(found.length);
      onRequest(found.request);
    }
  });
};

/** The first whole request, and how many bytes it has; undefined when it is not all there yet. */
const first = (bytes: Buffer): { request: Request; length: number } | undefined => {
  const request: string[] = [];
  let at = 0;
  const number = (): number | undefined => {
    const end = bytes.indexOf('\r\n', at);
    if (end === -1) return undefined;
    const value = Number(bytes.toString('latin1', at + 1, end));
    at = end + 2;
    return value;
  };
  const words = number();
  if (words === undefined) return undefined;
  while (request.length < words) {
    const size = number();
    if (size === undefined || at + size + 2 > bytes.length) return undefined;
    request.push(bytes.toString('utf8', at, at + size));
    at += size + 2;
  }
  return { request, length: at };
};
