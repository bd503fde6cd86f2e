import type { Runtime } from '../../core/util/runtime.js';
import type { ProcessNotes } from '../../core/seam/process-notes.js';
import { Inbox } from './inbox.js';
import { CREATE_TRIES, type NodeParents } from './node-parents.js';
import { create, EPHEMERAL, getData, remove, setData, type Acl } from './requests.js';
import { CODE, hasCode, lacksRights, unless, ZkFailure } from './zk-failure.js';
import type { ZkSession } from './zk-session.js';

/** Longest text, in bytes. A server closes the connection at a request of more than 1 MiB. */
const MAX_BYTES = 500_000;
const EMPTY = Buffer.alloc(0);

const nothing = (): void => undefined;

export interface NotesHost {
  readonly runtime: Runtime;
  readonly session: ZkSession;
  readonly parents: NodeParents;
  readonly acls: readonly Acl[];
  /** Path of the node that contains the notes. */
  readonly folder: string;
}

/**
 * Notes as ephemeral nodes, which end with the session of their process. A process that lives removes its own ones when
 * their time is over.
 */
export class ZookeeperNotes implements ProcessNotes {
  private readonly timers = new Map<string, unknown>();
  private readonly inboxes = new Set<Inbox>();

  constructor(private readonly host: NotesHost) {}

  async write(name: string, text: string, ttlMs: number): Promise<void> {
    const { runtime, session } = this.host;
    const data = Buffer.from(text);
    if (data.length > MAX_BYTES)
      throw new ZkFailure('the text is too long for a node', 'not-executed', { claimOnly: true });
    this.forget(name);
    await this.put(this.pathOf(name), data).catch((failure: unknown) =>
      lacksRights(this.host.folder, failure),
    );
    if (session.isClosed) return;
    this.forget(name);
    const expire = (): void => void this.remove(name).catch(nothing);
    this.timers.set(name, runtime.setTimer(expire, ttlMs, true));
    for (const inbox of this.inboxes) inbox.open();
  }

  /** A server may lag behind: a note that was just written may be missing. */
  read(names: readonly string[]): Promise<readonly (string | undefined)[]> {
    return Promise.all(
      names.map(async (name) => {
        const found = this.host.session.request(getData(this.pathOf(name)));
        return (await found.catch(unlessForeign))?.toString();
      }),
    );
  }

  async remove(name: string): Promise<void> {
    this.forget(name);
    await this.host.session.request(remove(this.pathOf(name))).catch(unlessForeign);
  }

  listen(name: string, listener: (text: string) => void): () => void {
    const path = this.inboxOf(name);
    const inbox = new Inbox(this.host.session, path, () => this.put(path, EMPTY), listener);
    this.inboxes.add(inbox);
    inbox.open();
    return () => {
      if (this.inboxes.delete(inbox)) inbox.close({ removes: true });
    };
  }

  async send(name: string, text: string): Promise<boolean> {
    const data = Buffer.from(text);
    if (data.length > MAX_BYTES) return false;
    const sent = this.host.session.request(setData(this.inboxOf(name), data)).then(() => true);
    return (await sent.catch(unlessForeign)) ?? false;
  }

  /** The session ends the nodes. */
  close(): void {
    for (const name of [...this.timers.keys()]) this.forget(name);
    for (const inbox of this.inboxes) inbox.close({ removes: false });
    this.inboxes.clear();
  }

  private pathOf(name: string): string {
    return `${this.host.folder}/${name}`;
  }

  /** No name of a note has a dot. */
  private inboxOf(name: string): string {
    return `${this.pathOf(name)}.inbox`;
  }

  private forget(name: string): void {
    this.host.runtime.clearTimer(this.timers.get(name));
    this.timers.delete(name);
  }

  /** Sets the data of a node, or creates it. */
  private async put(path: string, data: Buffer): Promise<void> {
    const { session, parents, acls, folder } = this.host;
    const until = session.timeLimit();
    for (let tries = 1; ; tries += 1) {
      try {
        return await session.request(setData(path, data), { until });
      } catch (failure) {
        if (!hasCode(failure, CODE.noNode) || tries > CREATE_TRIES) throw failure;
      }
      try {
        await session.request(create(path, EPHEMERAL, acls, data), { until });
        return;
      } catch (failure) {
        // The server removes the folder while it is empty.
        if (hasCode(failure, CODE.noNode)) await parents.create(folder, until);
        else if (!hasCode(failure, CODE.nodeExists)) throw failure;
      }
    }
  }
}

/** A node that is not there, or belongs to another client, is as none. */
const unlessForeign = unless(undefined, CODE.noNode, CODE.noAuth);
