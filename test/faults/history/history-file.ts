import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { HistoryEvent } from '../../checker/history.js';

/** Where a process writes what happens. Each line is out of its hands at once: it survives SIGKILL. */
export class HistoryWriter {
  private readonly file: number;

  constructor(path: string) {
    this.file = openSync(path, 'a');
  }

  write(event: HistoryEvent): void {
    writeSync(this.file, `${JSON.stringify(event)}\n`);
  }

  close(): void {
    closeSync(this.file);
  }
}

const CHUNK_BYTES = 1 << 20;

/** Reads such a file while it grows. */
export class HistoryReader {
  private readonly file: number;
  private position = 0;
  private rest = '';

  constructor(path: string) {
    this.file = openSync(path, 'a+');
  }

  /** What was added since the last time. The last line of a killed process may be cut off: that one is left out. */
  read(): HistoryEvent[] {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const pieces: Buffer[] = [];
    for (;;) {
      const length = readSync(this.file, chunk, 0, CHUNK_BYTES, this.position);
      if (length === 0) break;
      this.position += length;
      pieces.push(Buffer.from(chunk.subarray(0, length)));
    }
    const lines = (this.rest + Buffer.concat(pieces).toString()).split('\n');
    this.rest = lines.pop() ?? '';
    return lines.map((line) => JSON.parse(line) as HistoryEvent);
  }

  close(): void {
    closeSync(this.file);
  }
}
