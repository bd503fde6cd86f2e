import { wrap } from './wrap.js';

/** Longest silence while something is under way, in ms. */
const MAX_SILENCE_MS = 3_000;

/** Writes to the terminal, and says what it waits for when that takes long. */
export class Narrator {
  private spokeAt = 0;

  constructor(private readonly output: NodeJS.WritableStream) {}

  say(text: string): void {
    this.spokeAt = performance.now();
    this.output.write(`${wrap(text)}\n`);
  }

  /** Waits for `work`, and says so every few seconds, with the time that it has taken. */
  async during<T>(what: string, work: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      // Of several that are awaited at once, each says it in its turn.
      if (now - this.spokeAt < MAX_SILENCE_MS / 2) return;
      this.say(`… still ${what} (${Math.round((now - startedAt) / 1_000)} s)`);
    }, MAX_SILENCE_MS);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }
}
