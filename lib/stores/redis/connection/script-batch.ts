import { Script, type OfClaim } from './script.js';

/** The Lua function `time`, for scripts. It asks the server for its time once a request, however many runs it has. */
export const TIME = `local clock
local function time()
  if not clock then
    if redis.replicate_commands then redis.replicate_commands() end
    clock = redis.call('time')
  end
  return clock
end
`;

/** A script that can also run as a part of a batch. */
export interface BatchPart {
  /** Letter that distinguishes the script from the others. */
  readonly letter: string;
  readonly script: Script;
  /** Number of keys that it takes in a batch. */
  readonly keys: number;
  /** Number of arguments that each run has for itself; at least 1. The first may be an owner. */
  readonly args: number;
  /** Number of arguments behind them that most runs of a batch have in common. */
  readonly shared: number;
}

/** One run of a script that can be a part of a batch. */
export interface ScriptRun {
  readonly part: BatchPart;
  readonly keys: readonly string[];
  /** The keys in a batch, for a script whose number of keys varies: filled up to the number that the batch needs. */
  readonly batchKeys?: readonly string[] | undefined;
  readonly args: readonly (string | number)[];
  readonly claim?: OfClaim | undefined;
  /** Reads the reply; throws when no script can have given it. */
  readonly read: (reply: unknown) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (failure: unknown) => void;
}

/** One run, without what becomes of its reply. */
export type SharedRun = Pick<ScriptRun, 'part' | 'keys' | 'batchKeys' | 'args' | 'claim'>;

/** The request of one run, without its callbacks. */
export type PartRun = Pick<ScriptRun, 'part' | 'keys' | 'args'>;

/** Maximum number of runs in one request: Redis works on the first request while the next one is put together. */
export const MAX_RUNS = 16;

/**
 * Gathers the runs of one tick into one request. Replies that arrive together cause their next requests in the same
 * tick, and sending each by itself would cost more than everything else of a lock. No run waits longer than its tick.
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
    if (this.runs.push(run) === MAX_RUNS) this.flush();
  }

  /** Sends what has been gathered. Call it before sending anything that must not overtake these runs. */
  flush(): void {
    if (this.runs.length === 0) return;
    const { runs } = this;
    this.runs = [];
    this.send(runs);
  }
}

/** What the next runs of a part need not repeat: the arguments in common, and the beginning of the first one. */
interface Common {
  readonly args: PartRun['args'];
  readonly beginning: string;
}

const isCommonTo = ({ part, args }: PartRun, owner: string, common: Common): boolean => {
  for (let i = part.args; i < args.length; i++) if (args[i] !== common.args[i]) return false;
  return owner.startsWith(common.beginning);
};

/** Returns the keys and arguments of the batch script. */
export const keysAndArgs = (
  runs: readonly (PartRun & Pick<ScriptRun, 'batchKeys'>)[],
): [keys: string[], args: (string | number)[]] => {
  const keys: string[] = [];
  const args: (string | number)[] = [''];
  const known = new Map<BatchPart, Common>();
  let letters = '';
  for (const run of runs) {
    const { part } = run;
    const owner = String(run.args[0]);
    let common = known.get(part);
    if (!common || !isCommonTo(run, owner, common)) {
      common = { args: run.args, beginning: owner.slice(0, owner.lastIndexOf(':') + 1) };
      known.set(part, common);
      letters += '=';
      args.push(common.beginning, ...run.args.slice(part.args));
    }
    letters += part.letter;
    for (const key of run.batchKeys ?? run.keys) keys.push(key);
    args.push(owner.slice(common.beginning.length));
    for (let i = 1; i < part.args; i++) args.push(run.args[i]!);
  }
  args[0] = letters;
  return [keys, args];
};

/** Runs the parts one after the other, each as a function of its own keys and arguments. `step` handles each reply. */
const scriptOf = (parts: readonly BatchPart[], step: string, reply: string): Script =>
  new Script(`${TIME}
local parts = {}
${parts.map(asFunction).join('\n')}
local common = {}
local replies, i, k, a = {}, 0, 0, 1
for changed, letter in string.gmatch(ARGV[1], '(=?)(%a)') do
  local part = parts[letter]
  if changed ~= '' then
    common[letter] = { unpack(ARGV, a + 1, a + part[3]) }
    a = a + part[3]
  end
  local done, reply = pcall(part[4], common[letter], k, a)
  i, k, a = i + 1, k + part[1], a + part[2]
  if type(reply) == 'table' then reply = { reply.err } elseif not done then reply = { reply } end
  ${step}
end
${reply}
`);

const numbered = (from: number, to: number, item: (i: number) => string): string =>
  Array.from({ length: to - from + 1 }, (_, i) => item(from + i)).join(', ');

/** A part: its numbers of keys, of arguments, and of words in common; and the function for a run behind `k` and `a`. */
const asFunction = ({ letter, script, keys, args, shared }: BatchPart): string => {
  const own = [
    'common[1] .. ARGV[a + 1]',
    numbered(2, args, (i) => `ARGV[a + ${i}]`),
    numbered(2, shared + 1, (i) => `common[${i}]`),
  ];
  return `local function run_${letter}(KEYS, ARGV)
${script.source.replace(TIME, '')}
end
parts['${letter}'] = { ${keys}, ${args}, ${shared + 1}, function(common, k, a)
  return run_${letter}({ ${numbered(1, keys, (i) => `KEYS[k + ${i}]`)} }, { ${own.filter(Boolean).join(', ')} })
end }`;
};

/**
 * Makes a script that executes several runs of these parts one after the other, as if each had been sent by itself.
 *
 * Algorithm: the same scripts, as functions. The error of a run is its reply, and does not affect the others.
 *
 * KEYS[...]  those of the first run, then those of the second, and so on: for each script always the same number
 * ARGV[1]    a letter for each run: its script. '=' before it: the arguments that runs have in common come first
 * ARGV[2...] the arguments of the first run, then those of the second, and so on. In common are the beginning of the first
 *            argument and the last arguments of the script. The next runs of the script have the rest only
 * Reply: list, for each run: its reply, or a list with one string: its error
 */
export const batchOf = (parts: readonly BatchPart[]): Script =>
  scriptOf(parts, 'replies[i] = reply', 'return replies');

/**
 * Makes a script that executes several runs of these parts one after the other, until one of them has done something.
 * No other command is executed between them.
 *
 * Algorithm: as of a batch, but it ends with the first reply that is 1.
 *
 * KEYS[...], ARGV[...] as of a batch
 * Reply: integer  1 when a run did something, 0 when no run did and at least one had nothing to do
 *        error    of the first run that refused anything but the type of a value, else of the first run
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
