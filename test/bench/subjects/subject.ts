/** What runs while the lock is held. Gets the lease where the subject has one to give. */
export type Section = (lease?: { readonly fencingToken?: number }) => Promise<void>;

/** How many there are of a semaphore. */
export const PERMITS = 3;

/** Begins the URL of a ZooKeeper. What follows is a connect string. */
export const ZOOKEEPER = 'zookeeper://';

/** What a caller wants of a lock that readers share. */
export type Mode = 'read' | 'write';

/** One way of calling a subject: take the lock of `key`, run the section, release. A lock that knows no readers has no use for `mode`. */
export type Style = (key: string, section: Section, mode?: Mode) => Promise<void>;

export interface SubjectOptions {
  readonly url: string;
  /** All servers of a quorum, the one of `url` among them. */
  readonly quorum?: readonly string[];
  /** Some servers of a cluster, the one of `url` among them. */
  readonly cluster?: readonly string[];
  /** Number of connections to a database, where the subject has a pool. */
  readonly connections?: number;
  /** Number of services that share a process, where the subject can have several. Default: 1. */
  readonly services?: number;
  /** Whether grants carry tokens, where the subject can be told. Default: what the subject does by default. */
  readonly fencing?: boolean;
  /** How long a caller waits for a lock, in ms, where the subject can be told. */
  readonly waitMs?: number;
  /** How long a hold lasts unless it is renewed, in ms. Default: what the subject does by default. */
  readonly leaseMs?: number;
}

/** An open subject, with its connections up. */
export interface OpenSubject {
  /** The ways of calling it, by name: by hand, by decorator. */
  readonly styles: Readonly<Record<string, Style>>;
  /** Ends all that it opened. */
  close(): Promise<void>;
}

/** Something that is measured: the floor, this library, its peers. One file each, listed in index.ts. */
export interface Subject {
  readonly name: string;
  /** Commands that its scripts run inside Redis: the server counts them like those that clients send. */
  readonly insideScripts: readonly string[];
  open(options: SubjectOptions): Promise<OpenSubject>;
}
