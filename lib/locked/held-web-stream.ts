import { finished, Readable } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { methodOf, refuseFrozen, replace } from './held-iterable.js';
import { Reading } from './reading.js';

/** They give something that reads the stream step by step. */
const READERS = [Symbol.asyncIterator, 'values', 'getReader'] as const;
const STEPS = ['next', 'return', 'read', 'cancel'] as const;
/** They read it by themselves. */
const READS = ['pipeThrough', 'pipeTo', 'cancel'] as const;

/** Node's own: of another one only the iterator can be followed. */
export const isWebStream = (value: unknown): value is ReadableStream => value instanceof ReadableStream;

/**
 * Keeps a web stream locked until it is closed, cancelled or broken, however it is read. Its methods are replaced on
 * the stream itself, which `new Response(stream)` and the like know by its private fields.
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

  // Hears of every end, also of one that came through a reader made without these methods.
  finished(source as never, () => reading.finish());
  return reading.done.then(() => {
    // No reader came that would let go of what the stream reads from.
    if (givenUp) void cancel().catch(() => undefined);
  });
};
