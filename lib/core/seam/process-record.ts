/** The service that holds a key. */
export interface LockHolder {
  /** Id of the service in the store: its `locks.instanceId`, or the id of the client in a Java service. */
  readonly instanceId: string;
  /** `node` for this library, `java` for Redisson. */
  readonly client: 'node' | 'java';
  /** Name of its machine. Undefined for a Java service, and when its record could not be read. */
  readonly host?: string;
  /** Its process id on that machine. Undefined as `host` is. */
  readonly pid?: number;
  /** Its option `appName`. Undefined as `host` is, and when it has no name. */
  readonly appName?: string;
}

/** What a process tells others about itself. */
export type ProcessRecord = Pick<LockHolder, 'host' | 'pid' | 'appName'>;

/** Maximum length of a text of another process; a longer one is cut. */
const MAX_TEXT = 100;

/** Characters that would change a line of a log or a terminal. */
const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns text that another process wrote, on one line; undefined for anything else. */
export const textIn = (value: unknown): string | undefined => {
  if (typeof value !== 'string') return undefined;
  return value.slice(0, MAX_TEXT).toWellFormed().replace(CONTROL, '') || undefined;
};

/** Returns an object that another process wrote. Anything may stand in the store. */
export const objectIn = (text: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
};

/** Reads the record of a process. */
export const recordIn = (text: string): ProcessRecord => {
  const { host, pid, appName } = objectIn(text);
  const [hostText, appText] = [textIn(host), textIn(appName)];
  return {
    ...(hostText !== undefined && { host: hostText }),
    ...(Number.isSafeInteger(pid) && Number(pid) > 0 && { pid: pid as number }),
    ...(appText !== undefined && { appName: appText }),
  };
};

/** Returns a service of this library with its record. */
export const holderWith = (instanceId: string, record: ProcessRecord): LockHolder =>
  Object.freeze({ instanceId, client: 'node', ...record });

/** Ids of this library have version 8, all others version 4: see `Runtime.newId`. */
const OWNER = /^([0-9a-f]{8}-[0-9a-f]{4}-([48])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}):/;

/** Owner of a permit, which has 16 bytes: the id of its service, with a number in place of the zeros at its end. */
const PERMIT_OWNER = /^([0-9a-f]{8})([0-9a-f]{4})(8[0-9a-f]{3})([0-9a-f]{4})[0-9a-f]{12}$/;
const ZEROS = '0'.repeat(12);

/** Returns the id of a service: a new id, with zeros at its end. */
export const instanceIdFrom = (id: string): string => id.replace(/(?<=^.{24}).{12}$/, ZEROS);

/** Returns the owner of a permit. */
export const permitOwnerOf = (instanceId: string, number: number): string =>
  instanceId.replaceAll('-', '').slice(0, 20) + number.toString(16).padStart(ZEROS.length, '0');

/**
 * Returns the service to which an owner belongs; undefined for owners that do not tell, such as those of other libraries. Of a
 * permit, which another library may have named by chance, it is certain only with a record.
 */
export const holderOf = (owner: string): LockHolder | undefined => {
  const permit = PERMIT_OWNER.exec(owner)?.slice(1);
  const [, instanceId, version] = permit
    ? ['', `${permit.join('-')}-${ZEROS}`, '8']
    : (OWNER.exec(owner) ?? []);
  return instanceId === undefined
    ? undefined
    : Object.freeze({ instanceId, client: version === '8' ? 'node' : 'java' });
};
