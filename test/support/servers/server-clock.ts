import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { guardFolder } from '../process-guard.js';
import { serverFolder, type Equipment } from './server-process.js';

/** Where packages put the library: Debian below the folder of the architecture, others beside all libraries. */
const findLibrary = (): string | undefined => {
  const roots = ['/usr/lib', '/usr/lib64', '/usr/local/lib'].filter((folder) => existsSync(folder));
  const folders = roots.flatMap((root) => [
    join(root, 'faketime'),
    ...readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(root, entry.name, 'faketime')),
  ]);
  return folders.map((folder) => join(folder, 'libfaketime.so.1')).find((file) => existsSync(file));
};

/** The wall clock of a server, which can be set: libfaketime, told by a file. */
export class ServerClock implements Equipment {
  private offsetMs = 0;
  private readonly left: string[] = [];

  private constructor(
    private readonly file: string,
    /** Environment variables to start the server with. */
    readonly environment: Readonly<Record<string, string>>,
  ) {
    this.write();
  }

  static async create(): Promise<ServerClock> {
    const library = findLibrary();
    if (library === undefined) {
      throw new Error(
        'libfaketime was not found; it sets the clock of the test server. Debian and Ubuntu: apt-get install libfaketime',
      );
    }
    const folder = await serverFolder('clock');
    // PostgreSQL runs as another user.
    await chmod(folder, 0o755);
    const file = join(folder, 'offset');
    return new ServerClock(file, {
      // With jemalloc, which asks for the time before libfaketime is ready, the server would end at once: the C
      // library's malloc is put before it.
      LD_PRELOAD: `${library} libc.so.6`,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      // Both names, as versions differ.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    });
  }

  /** A server with this clock was started. When it is killed, libfaketime leaves something behind. */
  serves(pid: number): void {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`]) {
      const file = join('/dev/shm', name);
      this.left.push(file);
      guardFolder(file);
    }
  }

  /** Removes what is left behind. Call it when all servers have ended. */
  cleanUp(): void {
    for (const file of this.left) rmSync(file, { force: true });
  }

  jump(ms: number): void {
    this.offsetMs += ms;
    this.write();
  }

  private write(): void {
    const sign = this.offsetMs < 0 ? '-' : '+';
    // Renamed into place: the server must never read half of it.
    writeFileSync(`${this.file}.new`, `${sign}${Math.abs(this.offsetMs) / 1_000}\n`);
    renameSync(`${this.file}.new`, this.file);
  }
}
