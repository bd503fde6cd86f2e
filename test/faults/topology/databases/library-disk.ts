import { execFile } from 'node:child_process';
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onPath } from '../../../../.ci/process.mjs';
import { serverFolder } from '../../../support/servers/server-process.js';
import type { FaultyDisk } from '../database.js';

const SOURCE = fileURLToPath(new URL('faulty-disk.c', import.meta.url));

/**
 * A library that a server loads before the C library. It lets flushes take longer, and writes fail with ENOSPC. So the
 * server takes the same path as on a real disk, and no rights of the administrator are needed.
 */
export class LibraryDisk implements FaultyDisk {
  private constructor(
    private readonly file: string,
    /** Environment variables to start the server with. */
    readonly environment: Readonly<Record<string, string>>,
  ) {
    this.mend();
  }

  /** Resolves with undefined on a machine without a compiler. */
  static async create(): Promise<LibraryDisk | undefined> {
    const compiler = onPath('cc');
    if (!compiler) return undefined;
    const folder = await serverFolder('disk');
    // PostgreSQL runs as another user.
    await chmod(folder, 0o755);
    const library = join(folder, 'faulty-disk.so');
    await promisify(execFile)(compiler, ['-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl']);
    const file = join(folder, 'faults');
    return new LibraryDisk(file, { LD_PRELOAD: library, FAULTY_DISK: file });
  }

  slow(ms: number): void {
    this.write(ms, false);
  }

  fill(): void {
    this.write(0, true);
  }

  mend(): void {
    this.write(0, false);
  }

  private write(flushMs: number, isFull: boolean): void {
    // Renamed into place: the server must never read half of it.
    writeFileSync(`${this.file}.new`, `${flushMs} ${isFull ? 1 : 0}\n`);
    chmodSync(`${this.file}.new`, 0o644);
    renameSync(`${this.file}.new`, this.file);
  }
}
