import { Script } from './script.js';

/** The function `time`, for scripts: the server is asked for its time once, also when one request carries many runs. */
export const TIME = `local clock
local function time()
  if not clock then
    if redis.replicate_commands then redis.replicate_commands() end
    clock = redis.call('time')
  end
  return clock
end
`;

/** A script that can also be run as a part of a batch. */
export interface BatchPart {
  /** Tells it from the others. */
  readonly letter: string;
  readonly script: Script;
  /** How many keys and arguments it takes in a batch. */
  readonly keys: number;
  readonly args: number;
}

/** One run of a script that can be run as a part of a batch. */
export interface ScriptRun {
  readonly part: BatchPart;
  readonly keys: readonly string[];
  /** The keys in a batch, where a script always has the same number of them: those of a run with fewer are filled up. */
  readonly batchKeys?: readonly string[] | undefined;
  readonly args: readonly (string | number)[];
  /** Throws when no script answers that. */
  readonly read: (reply: unknown) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (failure: unknown) => void;
}

/** What one run of a part asks, without who is to be told. */
export type PartRun = Pick<ScriptRun, 'part' | 'keys' | 'args'>;

/** How many runs one request carries at most: Redis works on the first while the next are being put together. */
const MOST = 16;

/**
 * Gathers what is to be run within one tick. Replies that come in together set off their next requests in the same
 * tick; sent one by one these would cost more than all the rest of a lock. Nothing is held back for longer.
 */
export class ScriptBatch {
  private runs: ScriptRun[] = [];
  private readonly onTick = (): void => this.flush();

  constructor(private readonly send: (runs: readonly ScriptRun[]) => void) {}

  get isEmpty(): boolean {
    return this.runs.length === 0;
  }

  add(run: ScriptRun): void {
    if (this.runs.length === 0) process.nextTick(this.onTick);
    if (this.runs.push(run) === MOST) this.flush();
  }

  /** Sends what there is. To be called before whatever must not overtake it. */
  flush(): void {
    if (this.runs.length === 0) return;
    const { runs } = this;
    this.runs = [];
    this.send(runs);
  }
}

/** What the batch script takes. */
export const keysAndArgs = (
  runs: readonly (PartRun & Pick<ScriptRun, 'batchKeys'>)[],
): [keys: string[], args: (string | number)[]] => {
  const keys: string[] = [];
  const args: (string | number)[] = [''];
  let letters = '';
  for (const run of runs) {
    letters += run.part.letter;
    keys.push(...(run.batchKeys ?? run.keys));
    args.push(...run.args);
  }
  args[0] = letters;
  return [keys, args];
};

/** Runs one after the other, each by a function with the keys and arguments of its own; `step` says what comes of it. */
const scriptOf = (parts: readonly BatchPart[], step: string, reply: string): Script =>
  new Script(`${TIME}
local parts = {}
${parts.map(asFunction).join('\n')}
local replies = {}
local k, a = 0, 1
for i = 1, #ARGV[1] do
  local part = parts[string.sub(ARGV[1], i, i)]
  local last_key, last_arg = k + part[1], a + part[2]
  local done, reply = pcall(part[3], { unpack(KEYS, k + 1, last_key) }, { unpack(ARGV, a + 1, last_arg) })
  k, a = last_key, last_arg
  if type(reply) == 'table' then reply = { reply.err } elseif not done then reply = { reply } end
  ${step}
end
${reply}
`);

const asFunction = ({
  letter,
  script,
  keys,
  args,
}: BatchPart): string => `parts['${letter}'] = { ${keys}, ${args}, function(KEYS, ARGV)
${script.source.replace(TIME, '')}
end }`;

/**
 * A script that runs several runs of these, one after the other, as if each had been sent by itself.
 *
 * Algorithm: the very scripts, as functions. An error of one is its answer, and does not concern the others.
 *
 * KEYS      those of the first, then those of the second, and so on: for each script always the same number
 * ARGV[1]   a letter for each: which script it is
 * ARGV[2...] the arguments of the first, then those of the second, and so on
 * Reply: list, for each: what it replies, or a list with one string: its error
 */
export const batchOf = (parts: readonly BatchPart[]): Script =>
  scriptOf(parts, 'replies[i] = reply', 'return replies');

/**
 * A script that runs several runs of these, one after the other, until one of them has done something. Nobody else's
 * command comes between them.
 *
 * Algorithm: as that of a batch, but it ends with the first reply that is 1.
 *
 * KEYS, ARGV as those of a batch
 * Reply: integer  1 when one of them did something, 0 when one of them had nothing to do
 *        error    that of the first that refused something else than the type of a value, or of the first
 */
export const firstOf = (parts: readonly BatchPart[]): Script =>
  scriptOf(
    parts,
    `if reply == 1 then return 1 end
  if reply == 0 then
    replies[1] = 0
  elseif not replies[2] or string.find(replies[2], 'WRONGTYPE', 1, true) then
    replies[2] = reply[1]
  end`,
    'return replies[1] or redis.error_reply(replies[2])',
  );
