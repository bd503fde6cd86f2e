/** A subject, and the way of calling it, as it stands in the report. */
export interface Contender {
  readonly name: string;
  readonly subject: string;
  readonly style: string;
  /** The way for keys that are not known beforehand, where it is another one. */
  readonly anyKeyStyle?: string;
  /** Whose locks the report is about. */
  readonly ours?: true;
  /** Renews what it holds, so that a section may take longer than its lease. */
  readonly renews: boolean;
}

/** The bare commands. It cannot wait, so it takes part only in workloads without waiters. */
export const FLOOR: Contender = { name: 'floor', subject: 'floor', style: 'withLock', renews: false };

/** The library by hand: only a section that does nothing shows the difference to the decorator. */
export const BY_HAND: Contender = {
  name: 'nest-redis-lock, withLock',
  subject: 'nest-redis-lock',
  style: 'withLock',
  ours: true,
  renews: true,
};

/** The same with an option: a call reads and checks its options. */
export const WITH_OPTIONS: Contender = {
  ...BY_HAND,
  name: 'nest-redis-lock, withLock with options',
  style: 'withLock, options',
};

/** The same without waiting for the release. */
export const NO_WAIT_FOR_RELEASE: Contender = {
  ...BY_HAND,
  name: 'nest-redis-lock, awaitRelease: false',
  style: 'withLock, awaitRelease: false',
};

/** This library, through its decorator: what all targets are about. */
export const OURS: Contender = { ...BY_HAND, name: 'nest-redis-lock', style: '@Locked' };

/** The read-write lock of this library. */
export const READ_WRITE: Contender = { ...BY_HAND, name: 'nest-redis-lock, read-write', style: 'read-write' };

/** The semaphore of this library. */
export const SEMAPHORE: Contender = {
  ...BY_HAND,
  name: 'nest-redis-lock, semaphore',
  style: 'semaphore',
  renews: false,
};

/** A quorum without tokens, for the comparison with peers: they have none. */
export const UNFENCED: Contender = { ...BY_HAND, name: 'nest-redis-lock, fencing: false' };

/** A quorum with a token that grows over all servers. */
export const FENCED: Contender = { ...BY_HAND, name: 'nest-redis-lock, with fencing tokens' };

/** One for each library, through its decorator where it has one. */
export const libraries: readonly Contender[] = [
  OURS,
  { name: 'redlock', subject: 'redlock', style: 'using', renews: true },
  { name: '@sesamecare-oss/redlock', subject: '@sesamecare-oss/redlock', style: 'using', renews: true },
  { name: 'redis-semaphore', subject: 'redis-semaphore', style: 'acquire', renews: true },
  { name: 'redlock-universal', subject: 'redlock-universal', style: '@Redlock', renews: true },
  { name: 'node-redisson', subject: 'node-redisson', style: 'lock', renews: true },
  { name: 'murlock', subject: 'murlock', style: '@MurLock', renews: false },
  {
    name: '@nestjs-redis/lock',
    subject: '@nestjs-redis/lock',
    style: '@Redlock',
    anyKeyStyle: 'withLock',
    renews: true,
  },
];

/** All libraries, and the ways to call one by hand beside its decorator. */
export const everyWay: readonly Contender[] = [
  OURS,
  BY_HAND,
  ...libraries
    .slice(1)
    .flatMap((library) =>
      library.subject === 'redlock-universal'
        ? [library, { ...library, name: 'redlock-universal, using', style: 'using' }]
        : [library],
    ),
];
