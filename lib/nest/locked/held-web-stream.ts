import { finished, Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { methodOf, refuseFrozen, replace } from './held-iterable.js';
import { Reading } from './reading.js';

/** Methods that return a reader, which reads the stream step by step. */
const READERS = [Symbol.asyncIterator, 'values', 'getReader'] as const;
const STEPS = ['next', 'return', 'read', 'cancel'] as const;
/** Methods that read the stream themselves. */
const READS = ['pipeThrough', 'pipeTo', 'cancel'] as const;

/**
 * Returns true for Node's own web streams. Of any other web stream only the iterator can be followed. Loads Node's module
 * for web streams at the first one: the import of the library takes 1 to 2 ms less.
 */
export const isWebStream = (value: unknown): value is ReadableStream =>
  typeof (value as Partial<ReadableStream> | undefined | null)?.getReader === 'function' &&
  value instanceof process.getBuiltinModule('node:stream/web').ReadableStream;

/**
 * Keeps a web stream locked until it is closed, cancelled or broken, however it is read. Replaces methods on the stream
 * itself, because `new Response(stream)` and similar code need its private fields.
 */
export const holdWebStream = (source: ReadableStream, where: string): Promise<void> => {
  refuseFrozen(source, where);
  let givenUp = false;
  const reading = new Reading(where, () => {
    givenUp = !source.locked && !Readable.isDisturbed(source as never);
    return givenUp;
  });
  const cancel = source.cancel.bind(source);

  const runInSection = (target: object, name: PropertyKey, prepare?: (result: unknown) => void): void => {
    const original = methodOf(target, name);
    if (!original) return;
    replace(target, name, (...args) => {
      if (givenUp) throw reading.late();
      const result = reading.inSection(() => original.apply(target, args));
      prepare?.(result);
      return result;
    });
  };
  const prepareStream = (stream: object): void => {
    for (const name of READS) runInSection(stream, name);
    for (const name of READERS) runInSection(stream, name, prepareReader);
    runInSection(stream, 'tee', (halves) => (halves as readonly object[]).forEach(prepareStream));
  };
  const prepareReader = (reader: unknown): void => {
    for (const step of STEPS) runInSection(reader as object, step);
  };
  prepareStream(source);

  // Notices every end, also of a stream read by a reader that was made without these methods.
  finished(source as never, () => reading.finish());
  return reading.done.then(() => {
    // No reader came, so nothing else would release the source of the stream.
    if (givenUp) void cancel().catch(() => undefined);
  });
};
