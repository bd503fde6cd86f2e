/** What a worker asks the register, one JSON object in a line. */
export interface RegisterRequest {
  readonly id: number;
  readonly what: 'read' | 'write';
  readonly key: string;
  readonly lease: string;
  readonly token: number;
  /** The version that a write is based on. */
  readonly base?: number;
}

export interface RegisterReply {
  readonly id: number;
  readonly accepted: boolean;
  /** The version after the request. */
  readonly version: number;
}

/** What a key has been used for. */
interface Entry {
  fence: number;
  version: number;
}

/** A protected resource: it refuses whoever comes with a token below one it has seen. */
export class Register {
  private readonly entries = new Map<string, Entry>();

  handle({ id, what, key, token }: RegisterRequest): RegisterReply {
    const entry = this.entries.get(key) ?? { fence: -Infinity, version: 0 };
    this.entries.set(key, entry);
    const accepted = token >= entry.fence;
    if (accepted) {
      entry.fence = token;
      if (what === 'write') entry.version += 1;
    }
    return { id, accepted, version: entry.version };
  }
}

/** Calls `onLine` with each whole line of what arrives in pieces. */
export const lineReader = (onLine: (line: string) => void): ((chunk: Buffer) => void) => {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(onLine);
  };
};
