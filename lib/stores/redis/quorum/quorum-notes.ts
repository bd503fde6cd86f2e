import { LockConfigurationError } from '../../../core/errors/lock.errors.js';
import type { ProcessNotes } from '../../../core/seam/process-notes.js';

interface NotesHost {
  readonly majority: number;
  run<T>(work: () => Promise<T>): Promise<T>;
}

/** Notes at every node. A node that fails delays nothing while a majority replies. */
export class QuorumNotes implements ProcessNotes {
  constructor(
    private readonly nodes: readonly ProcessNotes[],
    private readonly host: NotesHost,
  ) {}

  async write(name: string, text: string, ttlMs: number): Promise<void> {
    await this.atMajority((node) => node.write(name, text, ttlMs));
  }

  async read(names: readonly string[]): Promise<readonly (string | undefined)[]> {
    const replies = await this.atMajority((node) => node.read(names));
    return names.map((_, i) => replies.map((texts) => texts[i]).find((text) => text !== undefined));
  }

  async remove(name: string): Promise<void> {
    await this.atMajority((node) => node.remove(name));
  }

  listen(name: string, listener: (text: string) => void): () => void {
    const stops = this.nodes.map((node) => node.listen?.(name, listener));
    return () => stops.forEach((stop) => stop?.());
  }

  async send(name: string, text: string): Promise<boolean> {
    return (await this.atMajority(async (node) => (await node.send?.(name, text)) ?? false)).some(Boolean);
  }

  /** Asks all nodes. Resolves with the replies of a majority, or of fewer when the others have failed. */
  private atMajority<T>(request: (node: ProcessNotes) => Promise<T>): Promise<readonly T[]> {
    const { host, nodes } = this;
    const asking = (): Promise<readonly T[]> =>
      new Promise((resolve, reject) => {
        const replies: T[] = [];
        const failures: unknown[] = [];
        const settle = (): void => {
          if (replies.length >= host.majority) resolve([...replies]);
          if (replies.length + failures.length < nodes.length) return;
          if (replies.length > 0) resolve(replies);
          else reject(failures.find((failure) => failure instanceof LockConfigurationError) ?? failures[0]);
        };
        for (const node of nodes) {
          request(node).then(
            (reply) => {
              replies.push(reply);
              settle();
            },
            (failure: unknown) => {
              failures.push(failure);
              settle();
            },
          );
        }
      });
    return host.run(asking);
  }
}
