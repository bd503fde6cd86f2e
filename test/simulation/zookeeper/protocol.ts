import { JuteReader, JuteWriter, ProtocolError } from '../../../lib/stores/zookeeper/jute.js';
import type { TreeNode } from './sim-tree.js';

/** Names of the operations, by number. */
const NAMES = {
  2: 'delete',
  4: 'getData',
  8: 'getChildren',
  9: 'sync',
  15: 'create',
  19: 'createContainer',
  100: 'auth',
  101: 'setWatches',
  [-11]: 'close',
} as const;

export type RequestName = (typeof NAMES)[keyof typeof NAMES];
/** Also the first message of a connection, which is no request. */
export type MessageName = RequestName | 'hello';

export interface Hello {
  readonly lastSeen: bigint;
  readonly timeoutMs: number;
  readonly session: bigint;
  readonly password: string;
}

/** A request as a server reads it. */
export type Request = { readonly xid: number } & (
  | { readonly name: 'create' | 'createContainer'; readonly path: string; readonly flags: number }
  | { readonly name: 'delete' | 'sync'; readonly path: string }
  | { readonly name: 'getData' | 'getChildren'; readonly path: string; readonly watched: boolean }
  | {
      readonly name: 'setWatches';
      readonly lastSeen: bigint;
      readonly data: readonly string[];
      readonly children: readonly string[];
    }
  | { readonly name: 'auth' | 'close' }
);

export const readHello = (frame: Buffer): Hello => {
  const from = new JuteReader(frame);
  from.int();
  const [lastSeen, timeoutMs, session] = [from.long(), from.int(), from.long()];
  return { lastSeen, timeoutMs, session, password: from.bytes().toString('latin1') };
};

/** Returns the name of a message of a client, which is one whole frame. */
export const messageNameOf = (frame: Buffer, isFirst: boolean): MessageName =>
  isFirst ? 'hello' : nameOf(frame.readInt32BE(8));

const nameOf = (op: number): RequestName => {
  const name = (NAMES as Readonly<Record<number, RequestName>>)[op];
  if (name === undefined) throw new ProtocolError(`there is no operation ${op}`);
  return name;
};

export const readRequest = (frame: Buffer): Request => {
  const from = new JuteReader(frame);
  const xid = from.int();
  const name = nameOf(from.int());
  const request = { xid, ...bodyOf(name, from) };
  if (!from.isAtEnd) throw new ProtocolError(`${name} has bytes at its end`);
  return request;
};

/** A request without its number. */
type Body = Request extends infer R ? (R extends Request ? Omit<R, 'xid'> : never) : never;

const bodyOf = (name: RequestName, from: JuteReader): Body => {
  switch (name) {
    case 'create':
    case 'createContainer': {
      const path = from.text();
      from.bytes();
      from.list(() => [from.int(), from.text(), from.text()]);
      return { name, path, flags: from.int() };
    }
    case 'delete': {
      const path = from.text();
      from.int();
      return { name, path };
    }
    case 'sync':
      return { name, path: from.text() };
    case 'getData':
    case 'getChildren':
      return { name, path: from.text(), watched: from.bool() };
    case 'setWatches': {
      const lastSeen = from.long();
      const [data, , children] = [0, 1, 2].map(() => from.list(() => from.text()));
      return { name, lastSeen, data: data!, children: children! };
    }
    case 'auth':
      from.int();
      from.text();
      from.bytes();
      return { name };
    case 'close':
      return { name };
  }
};

export const welcome = (timeoutMs: number, session: bigint, password: string): Buffer =>
  new JuteWriter()
    .int(0)
    .int(timeoutMs)
    .long(session)
    .bytes(Buffer.from(password, 'latin1'))
    .bool(false)
    .frame();

/** A reply; `write` adds what the request asked for. */
export const reply = (
  xid: number,
  zxid: bigint,
  code = 0,
  write: (to: JuteWriter) => void = () => undefined,
): Buffer => {
  const to = new JuteWriter().int(xid).long(zxid).int(code);
  if (code === 0) write(to);
  return to.frame();
};

export const eventOf = (type: number, path: string): Buffer =>
  // The session is connected.
  new JuteWriter().int(-1).long(-1n).int(0).int(type).int(3).text(path).frame();

export const writeStat = (
  to: JuteWriter,
  { created, owner, children, creations, childrenChanged }: TreeNode,
): void => {
  to.long(created).long(created).long(0n).long(0n).int(0);
  to.int(creations).int(0).long(owner).int(0).int(children.size).long(childrenChanged);
};
