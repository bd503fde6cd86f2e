import type { SendTerms } from '../../../lib/stores/load/unsent-requests.js';
import { Lane } from '../../../lib/stores/sql/lane.js';
import { raw } from '../../../lib/stores/sql/sql.js';
import type { OneOf, SqlSession, Statement, Together } from '../../../lib/stores/sql/sql.js';
import { watched, type Watched } from '../core/core-under-test.js';
import { settled, VirtualRuntime } from '../core/virtual-runtime.js';

export const TIMEOUT_MS = 2_000;

const nothing = (): void => undefined;

/** What a database replies to a statement, by its text; each claim of several gets the statement's name. */
export const replyTo = (text: string): unknown => {
  const [name, ...claims] = text.split(' ');
  return name === 'alone' || name === 'other' ? text : claims.map((claim) => `${name} ${claim}`);
};

const statement = <T>(text: string): Statement<T> => ({ sql: raw(text), read: (value) => value as T });

/** Statements that say the claims of their requests. */
export const formOf = (name: string): Together<string, string> => ({
  many: (claims) => statement<readonly OneOf<string>[]>(`${name} ${claims.join(' ')}`),
  inserting: { many: (claims) => statement<readonly OneOf<string>[]>(`insert ${claims.join(' ')}`) },
});

/** A lane whose statements are texts, and a database that replies when the test says so. */
export class ToldLane {
  readonly runtime = new VirtualRuntime();
  /** Texts of the statements so far. */
  sent: string[] = [];
  /** When requests were told that they are sent. */
  readonly sentAt: number[] = [];
  /** Replies to a statement, or throws. */
  reply: (text: string) => unknown = replyTo;
  readonly lane: Lane;
  readonly take = formOf('take');
  private answer = nothing;

  /** @param library a copy with a mistake has its own */
  constructor(
    library: { readonly Lane: typeof Lane } = { Lane },
    traits: Partial<SqlSession> = {},
    /** Whether the database waits long for a row that others have locked. */
    waitsLong = false,
  ) {
    const session: SqlSession = {
      isOver: false,
      send: ({ sql, read }) => {
        const [text] = sql.texts as [string];
        this.sent.push(text);
        return new Promise((resolve, reject) => {
          this.answer = () => {
            this.answer = nothing;
            try {
              resolve(read(this.reply(text)));
            } catch (failure) {
              reject(failure);
            }
          };
        });
      },
      destroy: nothing,
      ...traits,
    };
    this.lane = new library.Lane({
      ...{ name: 'a database', runtime: this.runtime, timeoutMs: TIMEOUT_MS },
      connect: () => Promise.resolve(session),
      ...(waitsLong && { probe: (key) => statement(`probe ${key}`) }),
    });
  }

  /** Returns a lane with a statement under way: what comes next waits behind it. */
  static async busy(...terms: ConstructorParameters<typeof ToldLane>): Promise<ToldLane> {
    const told = new ToldLane(...terms);
    await told.keepBusy();
    return told;
  }

  async keepBusy(): Promise<void> {
    void this.lane.run(() => statement('other'));
    await settled();
  }

  /** Asks for a key, perhaps together with others. */
  ask(by: Together<string, string>, claim: string, terms: SendTerms = {}): Watched<string> {
    const company = { by, claim, sent: (at: number) => void this.sentAt.push(at) };
    const own = (): Statement<string> => statement(`alone ${claim}`);
    return watched(this.lane.run<string, string>(own, { lines: [claim], ...terms }, company));
  }

  /** Lets the statement under way have its reply. */
  async replies(): Promise<void> {
    this.answer();
    await settled();
  }

  /** The same for all later ones, too. */
  async proceed(): Promise<void> {
    for (let before = -1; before < this.sent.length;) {
      before = this.sent.length;
      await this.replies();
    }
  }
}
