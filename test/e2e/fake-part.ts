import { clock } from '../../sample-app/src/demo/live/ids.js';
import type { PartMessage } from '../../sample-app/src/demo/part-process.js';
import type { Part } from '../../sample-app/src/demo/parts.js';

/** An instance of which only the messages count. */
export class FakePart implements Part {
  readonly name = '';
  readonly url = '';
  readonly alive = true;
  says: (message: PartMessage) => void = () => undefined;
  private id = 0;

  kill(): void {}
  send(): void {}
  stop(): Promise<void> {
    return Promise.resolve();
  }
  onMessage(listener: (message: PartMessage) => void): () => void {
    this.says = listener;
    return () => undefined;
  }

  /** It acquires the lock, and sells to a buyer. Returns the end of that. */
  sells(token: number, at = clock()): (at?: number) => void {
    const id = (this.id += 1);
    this.says({ type: 'began', id, buyer: `buyer-${token}`, token, at });
    return (end = clock()) => this.says({ type: 'ended', id, at: end });
  }
}
