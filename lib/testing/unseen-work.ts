import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { Socket } from 'node:net';
import { callerOf, creatorOf } from './caller-site.js';
import { asides, runs, type LossRun } from './loss-run.js';

/** A timer or a promise of a run, until it is over. */
interface Resource {
  readonly run: LossRun;
  readonly type: string;
  readonly at: () => string | undefined;
  readonly resource: object;
}

/** Data that was sent outside of the watched calls. */
interface Sent {
  readonly run: LossRun;
  readonly socket: Socket;
  readonly what: string;
  readonly at: string | undefined;
}

const NAMES: Readonly<Record<string, string>> = {
  PROMISE: 'asynchronous work',
  Timeout: 'setTimeout or setInterval',
};

const later = setImmediate;

/** Waits until the callbacks that are due have run. */
export const nextTurns = async (): Promise<void> => {
  for (let turn = 0; turn < 2; turn++) await new Promise((done) => later(done));
};

/** Reports of all runs that go on share the replaced methods of sockets. */
const writers = new Set<(socket: Socket, at: () => string | undefined) => void>();

/** Replaces a method by which sockets send data. Returns a function that puts it back, unless another one is there. */
const replaced = (name: 'write' | 'end'): (() => void) => {
  const inherited = Object.getOwnPropertyDescriptor(Socket.prototype, name);
  const method: unknown = Reflect.get(Socket.prototype, name);
  const hook = function (this: Socket, ...args: unknown[]): unknown {
    const isData = typeof args[0] === 'string' || ArrayBuffer.isView(args[0]);
    if (isData) for (const writer of writers) writer(this, () => callerOf(hook));
    return Reflect.apply(method as () => unknown, this, args);
  };
  Object.defineProperty(Socket.prototype, name, { value: hook, configurable: true, writable: true });
  return () => {
    if (Reflect.get(Socket.prototype, name) !== hook) return;
    if (inherited) Object.defineProperty(Socket.prototype, name, inherited);
    else Reflect.deleteProperty(Socket.prototype, name);
  };
};
let putBack: readonly (() => void)[] = [];

/** What a run does where nothing watches it: work that it leaves behind, and data that it sends by other clients. */
export class UnseenWork {
  /** Kind of the watched call that is running. */
  readonly inside = new AsyncLocalStorage<'statement' | 'method' | undefined>();
  private readonly resources = new Map<number, Resource>();
  private readonly sockets = new WeakSet<Socket>();
  private sent: Sent[] = [];
  private readonly init = (id: number, type: string, _trigger: number, resource: object): void => {
    if (type !== 'HTTP2STREAM' && !(type in NAMES)) return;
    const run = runs.getStore();
    if (!run || asides.getStore() || this.inside.getStore()) return;
    const isRequest = type === 'HTTP2STREAM';
    // A request of a package sends data of the scenario. Of timers and promises, only its own count.
    const line = isRequest ? callerOf(this.init) : undefined;
    const at = isRequest ? () => line : creatorOf(this.init);
    if (at && (run.hasStarted || !isRequest)) this.resources.set(id, { run, type, at, resource });
  };
  private readonly hook = createHook({
    init: this.init,
    promiseResolve: (id) => this.resources.delete(id),
    // A reaction has run. An interval runs again.
    after: (id) => this.resources.get(id)?.type === 'PROMISE' && this.resources.delete(id),
  });
  /** Notes the sockets of watched connections: their drivers send queued statements later. */
  private readonly writes = (socket: Socket, at: () => string | undefined): void => {
    const inside = this.inside.getStore();
    if (inside === 'statement') this.sockets.add(socket);
    const own = runs.getStore();
    // A server sends the reply to a call.
    const isReply = !own && Boolean((socket as { server?: unknown }).server);
    if (inside || isReply || asides.getStore() || socket === process.stdout || socket === process.stderr)
      return;
    const line = at();
    const run = own ?? (line === undefined ? undefined : this.current());
    const { remoteAddress: host = 'another process', remotePort: port } = socket;
    const what = `Socket.write to ${host}${port === undefined ? '' : `:${port}`}`;
    if (run?.hasStarted) this.sent.push({ run, socket, what, at: line });
  };

  /** @param current returns the run that is going on */
  constructor(private readonly current: () => LossRun | undefined) {}

  start(): void {
    this.hook.enable();
    if (writers.size === 0) putBack = [replaced('write'), replaced('end')];
    writers.add(this.writes);
  }

  stop(): void {
    this.hook.disable();
    // Node carries each storage that was used through all later promises of the process.
    this.inside.disable();
    writers.delete(this.writes);
    if (writers.size === 0) for (const restore of putBack) restore();
  }

  /** Reports what the runs have sent and left until now. */
  report(): void {
    for (const { run, socket, ...call } of this.sent)
      if (call.at !== undefined || !this.sockets.has(socket)) run.unseen(call, 'unwatched');
    this.sent = [];
    for (const { run, type, at, resource } of this.resources.values())
      if ((resource as { _destroyed?: boolean })._destroyed !== true)
        run.unseen({ what: NAMES[type] ?? type, at: at() }, type in NAMES ? 'unawaited' : 'unwatched');
    this.resources.clear();
  }
}
