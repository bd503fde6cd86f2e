import { LockKeyError } from '../../core/errors/lock.errors.js';
import { checkStoreKey } from '../key-rule.js';

/** Characters that a server refuses in a path. */
const REFUSED = /[\p{Cc}\p{Cs}\p{Co}\u{fff0}-\u{10ffff}]/u;
/** The same, and characters with a meaning in a path or in this encoding. */
const ENCODED = /[%/\p{Cc}\p{Cs}\p{Co}\u{fff0}-\u{10ffff}]/gu;
/** Longest path. A server accepts requests of 1 MiB by default, and closes the connection at a longer one. */
const MAX_LENGTH = 200_000;
const DOTS = /^\.{1,2}$/;

const percent = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');

/** Returns a name as one segment of a path: what a path cannot contain is percent-encoded. */
export const segmentOf = (name: string): string =>
  DOTS.test(name) ? percent(name) : name.replace(ENCODED, percent);

/** Returns the name of which a segment is the encoding; undefined when it is of none. */
const nameOf = (segment: string): string | undefined => {
  try {
    const name = decodeURIComponent(segment);
    return segmentOf(name) === segment ? name : undefined;
  } catch {
    return undefined;
  }
};

/** Returns what a path must be, as the end of a sentence, for one that a server refuses. */
export const faultOfPath = (path: string): string | undefined => {
  if (!path.startsWith('/')) return 'begin with "/"';
  if (REFUSED.test(path)) return 'have no control character, and no character beyond U+FFEF';
  if (path === '/zookeeper' || path.startsWith('/zookeeper/'))
    return 'not be in "/zookeeper", which is the server\'s';
  if (path.length > MAX_LENGTH) return `have at most ${MAX_LENGTH} characters`;
  const segments = path.slice(1).split('/');
  if (path !== '/' && segments.some((segment) => segment === '' || DOTS.test(segment)))
    return 'have no empty segment, none that is "." or "..", and no "/" at its end';
  return undefined;
};

/** Returns the nodes that contain a path, the outermost first, without the root. */
export const ancestorsOf = (path: string): readonly string[] => {
  const segments = path.slice(1).split('/').slice(0, -1);
  return segments.map((_, i) => `/${segments.slice(0, i + 1).join('/')}`);
};

/** Name of the node that contains the notes of processes. It is the encoding of no key. */
const NOTES = '%nest-redis-lock';

/** Where the locks of keys are. */
export class LockPaths {
  /** @param base path of the node that contains the locks, `/` for the root */
  constructor(
    readonly chroot: string,
    private readonly base: string,
    private readonly custom: ((key: string) => string) | undefined,
  ) {}

  /** Whether an option says where locks are, so that one may be inside another. */
  get mayNest(): boolean {
    return this.custom !== undefined;
  }

  /** Absolute path of the node that contains the locks. */
  get basePath(): string {
    return this.absolute(this.base);
  }

  /**
   * Path of the node that contains the notes of processes. A path of the option may be {@link basePath}, or above it; so
   * the notes are in no node of that.
   */
  get notesPath(): string {
    const { basePath, chroot } = this;
    return `${this.mayNest ? chroot : basePath === '/' ? '' : basePath}/${NOTES}`;
  }

  /** @throws {LockKeyError} for a key that has no path */
  check(finalKey: string): void {
    checkStoreKey(finalKey);
    if (this.custom) this.customPath(finalKey);
    else if (finalKey === 'zookeeper' && this.basePath === '/')
      throw new LockKeyError("it has the path of the server's own nodes. Set basePath.");
  }

  /**
   * Returns the path of a key's lock.
   *
   * @throws {LockKeyError} for a key that has no path
   */
  of(finalKey: string): string {
    if (this.custom) return `${this.chroot}${this.customPath(finalKey)}`;
    return `${this.basePath === '/' ? '' : this.basePath}/${segmentOf(finalKey)}`;
  }

  /** Returns the keys with these segments in {@link basePath}, without segments of other clients. */
  keysOf(segments: readonly string[]): readonly string[] {
    return segments.map(nameOf).filter((name) => name !== undefined);
  }

  private customPath(finalKey: string): string {
    let path: unknown;
    try {
      path = this.custom!(finalKey);
    } catch (cause) {
      // Without the text of the app's error, which may contain the key.
      throw new LockKeyError('the option path failed for it (see cause).', { cause });
    }
    if (typeof path !== 'string') throw new LockKeyError('the option path returned no text for it.');
    const fault = path === '/' ? 'name a node below the root' : faultOfPath(path);
    if (fault === undefined) return path;
    throw new LockKeyError(`the path that the option path returned for it must ${fault}.`);
  }

  private absolute(path: string): string {
    return path === '/' ? this.chroot || '/' : `${this.chroot}${path}`;
  }
}
