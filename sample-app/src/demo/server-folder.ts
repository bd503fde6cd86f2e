import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The folder of a server that a part runs. When the part ends, it ends the server, and then removes the folder. */
export class ServerFolder {
  readonly path: string;
  private server: ChildProcess | undefined;

  constructor(name: string) {
    this.path = mkdtempSync(join(tmpdir(), `flash-sale-${name}-`));
    process.once('SIGTERM', () => {
      // Only a server that has ended leaves its port, and writes no more files.
      if (this.kill()) this.server?.once('exit', () => process.exit());
      else process.exit();
    });
    process.once('exit', () => {
      this.kill();
      rmSync(this.path, { recursive: true, force: true, maxRetries: 3 });
    });
  }

  /** Takes the server that now runs in this folder, and returns it. */
  runs<T extends ChildProcess>(server: T): T {
    this.server = server;
    return server;
  }

  private kill(): boolean {
    return this.server?.kill('SIGKILL') ?? false;
  }
}
