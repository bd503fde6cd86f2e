import type { Watch, WatchListener } from '../../../core/seam/lock-store.js';
import type { Script } from '../connection/script.js';
import type { RedisLink } from './redis-link.js';

/** Objects without a holder: a number under each key, and a channel that announces its changes. */
export abstract class RedisNumbers {
  constructor(protected readonly link: RedisLink) {}

  protected abstract channel(finalKey: string): string;

  watch(finalKey: string, listener: WatchListener): Watch {
    return this.link.channels.watch(this.channel(finalKey), listener);
  }

  /** Rejects a key that the objects cannot have. */
  protected check(_finalKey: string): void {}

  protected async run<T>(
    script: Script,
    finalKey: string,
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    this.check(finalKey);
    const { commands, keys } = this.link;
    return commands.run(script, [keys.name(finalKey)], args, read);
  }

  protected announcing(finalKey: string): [channel: string, publish: string] {
    return [this.channel(finalKey), this.link.publish];
  }
}
