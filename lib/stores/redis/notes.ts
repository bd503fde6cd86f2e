import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { ProcessNotes } from '../../core/seam/process-notes.js';
import type { Watch } from '../../core/seam/watch.js';
import { isNotPermitted } from './connection/redis-failure.js';
import { Script } from './connection/script.js';
import type { RedisLink } from './kinds/redis-link.js';

/**
 * Keeps a note for a while.
 *
 * KEYS[1] the note
 * ARGV[1] its text  ARGV[2] its time to live in ms
 * Reply: OK
 */
const WRITE = new Script(`return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])`);

/**
 * Returns the text of a note.
 *
 * KEYS[1] the note
 * Reply: its text; nil without a note
 */
const READ = new Script(`return redis.call('get', KEYS[1])`);

/**
 * Removes a note.
 *
 * KEYS[1] the note
 * Reply: number of removed notes
 */
const REMOVE = new Script(`return redis.call('del', KEYS[1])`);

/**
 * Sends a text to a process.
 *
 * KEYS[1] the note of the process, which only names its server
 * ARGV[1] PUBLISH or SPUBLISH  ARGV[2] the channel of the process  ARGV[3] the text
 * Reply: number of receivers
 */
const SEND = new Script(`return redis.call(ARGV[1], ARGV[2], ARGV[3])`);

export const NOTE_SCRIPTS = [WRITE, READ, REMOVE, SEND];

const nothing = (): void => undefined;

const textIn = (reply: unknown): string | undefined => (typeof reply === 'string' ? reply : undefined);

/** Adds the rule that the Redis user lacks. */
const lacksRule = (failure: unknown): never => {
  if (!isNotPermitted(failure)) throw failure;
  throw new LockConfigurationError(
    'the Redis user of the locks lacks the ACL rules ~nest_redis_lock:* &nest_redis_lock:grant:* +get +set +del; see ' +
      'docs/operations/permissions.md.',
    { cause: failure },
  );
};

/** Notes as keys with a time to live, and messages by Pub/Sub. */
export class RedisNotes implements ProcessNotes {
  constructor(private readonly link: RedisLink) {}

  write(name: string, text: string, ttlMs: number): Promise<void> {
    return this.run(WRITE, name, [text, ttlMs], nothing);
  }

  read(names: readonly string[]): Promise<readonly (string | undefined)[]> {
    return Promise.all(names.map((name) => this.run(READ, name, [], textIn)));
  }

  remove(name: string): Promise<void> {
    return this.run(REMOVE, name, [], nothing);
  }

  listen(name: string, listener: (text: string) => void): () => void {
    const watch: Watch = this.link.channels.watch(this.link.keys.noteChannel(name), {
      notified: nothing,
      failed: nothing,
      message: listener,
      permanent: true,
    });
    return () => watch.close();
  }

  /** In a cluster only the servers know all receivers. */
  send(name: string, text: string): Promise<boolean> {
    const { keys, publish, topology } = this.link;
    const args = [publish, keys.noteChannel(name), text];
    return this.run(SEND, name, args, (receivers) => topology.hasSlots || Number(receivers) > 0);
  }

  private run<T>(
    script: Script,
    name: string,
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { commands, keys } = this.link;
    return commands.run(script, [keys.note(name)], args, read).catch(lacksRule);
  }
}
