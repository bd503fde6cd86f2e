import type { LoggerService } from '@nestjs/common';

/** Keeps what an app logs. Hand it to the factory, or Nest prints to the console. */
export class RecordingLogger implements LoggerService {
  readonly warnings: string[] = [];
  readonly errors: string[] = [];
  readonly lines: string[] = [];
  readonly debugLines: string[] = [];

  // Nest 10 calls it without looking whether it is there.
  setLogLevels(): void {}

  log(message: unknown): void {
    this.lines.push(String(message));
  }

  warn(message: unknown): void {
    // Of Nest 10 on a slow machine.
    if (/ms to serialize/.test(String(message))) return;
    this.warnings.push(String(message));
  }

  error(message: unknown): void {
    this.errors.push(String(message));
  }

  debug(message: unknown): void {
    this.debugLines.push(String(message));
  }

  fatal(message: unknown): void {
    this.errors.push(String(message));
  }
}
