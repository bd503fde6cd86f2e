import type { Part } from '../parts.js';

/** Instance that has read under the lock and waits to write. */
export interface Writer {
  readonly instance: Part;
  readonly token: number;
  /** Returns true when its write has ended. */
  readonly written: () => boolean;
}

/** Replies to the instances that ask before they write. All may write, except those that are caught. */
export class Writers {
  private wanted: ((left: number) => boolean) | undefined;
  private onCaught: (writer: Writer) => void = () => undefined;

  /** Listens to an instance until its end. */
  add(instance: Part): void {
    instance.onMessage((message) => {
      if (message.type !== 'about-to-write') return;
      const { left, token } = message;
      if (!this.wanted?.(left)) return instance.send({ type: 'write', token });
      this.wanted = undefined;
      this.onCaught(writerOf(instance, token));
    });
  }

  /**
   * Resolves with the first writer that leaves as much as wanted. It waits between its read and its write until it gets its
   * leave. Rejects when the signal aborts before.
   */
  catch(wanted: (left: number) => boolean, signal: AbortSignal): Promise<Writer> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.wanted = undefined;
        reject(signal.reason as Error);
      };
      if (signal.aborted) return stop();
      signal.addEventListener('abort', stop, { once: true });
      this.wanted = wanted;
      this.onCaught = (writer) => {
        signal.removeEventListener('abort', stop);
        resolve(writer);
      };
    });
  }
}

const writerOf = (instance: Part, token: number): Writer => {
  let written = false;
  const off = instance.onMessage((message) => {
    if (message.type !== 'wrote' || message.token !== token) return;
    written = true;
    off();
  });
  return { instance, token, written: () => written };
};

/** Lets a writer write what it has announced. */
export const letWrite = ({ instance, token }: Writer): void => instance.send({ type: 'write', token });
