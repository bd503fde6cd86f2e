import { ProtocolError } from './jute.js';

/** Longest frame that is accepted. Servers send at most `jute.maxbuffer`, which is 1 MiB by default. */
const MAX_FRAME = 16 * 1_024 * 1_024;
const LENGTH = 4;

/** Cuts a stream of bytes into frames, each behind its length. */
export class Frames {
  private chunks: Buffer[] = [];
  private size = 0;

  /** Returns the frames that are complete with these bytes. Throws a {@link ProtocolError} for a length that cannot be true. */
  add(chunk: Buffer): Buffer[] {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const frames: Buffer[] = [];
    for (
      let length = this.next();
      length !== undefined && this.size >= LENGTH + length;
      length = this.next()
    ) {
      const all = this.joined();
      frames.push(all.subarray(LENGTH, LENGTH + length));
      this.chunks = [all.subarray(LENGTH + length)];
      this.size -= LENGTH + length;
    }
    return frames;
  }

  /** Returns the length of the next frame; undefined until it has arrived. */
  private next(): number | undefined {
    if (this.size < LENGTH) return undefined;
    const first = this.chunks[0]!.length >= LENGTH ? this.chunks[0]! : this.joined();
    const length = first.readInt32BE();
    if (length < 0 || length > MAX_FRAME) {
      const begin = first
        .subarray(0, LENGTH)
        .toString('latin1')
        .replace(/[^ -~]/g, '.');
      throw new ProtocolError(`a frame of ${length} bytes (${JSON.stringify(begin)})`);
    }
    return length;
  }

  private joined(): Buffer {
    const all = this.chunks.length === 1 ? this.chunks[0]! : Buffer.concat(this.chunks);
    this.chunks = [all];
    return all;
  }
}
