const STACK_LINES = 50;
/** The creator is among the first. */
const CREATOR_LINES = 8;

type Sites = readonly NodeJS.CallSite[];

/** Returns the stack of a caller as call sites, and a function that returns its lines with source maps. */
const stackOf = (
  hook?: (...args: never[]) => unknown,
  lines = STACK_LINES,
): readonly [sites: Sites, lines: () => readonly string[]] => {
  const { stackTraceLimit } = Error;
  const prepareStackTrace = Reflect.get(Error, 'prepareStackTrace');
  try {
    Error.stackTraceLimit = lines;
    const raw: { stack?: unknown } = {};
    Error.prepareStackTrace = (_, sites) => sites;
    Error.captureStackTrace(raw, hook);
    const sites = raw.stack as Sites;
    Error.prepareStackTrace = prepareStackTrace;
    // V8 formats it when it is read.
    const mapped: { stack?: unknown } = {};
    Error.captureStackTrace(mapped, hook);
    return [
      sites,
      () =>
        String(mapped.stack)
          .split('\n')
          .filter((line) => /^\s*at /.test(line)),
    ];
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
};

/** Folder of this package. */
const ROOT = String(stackOf()[0][0]?.getFileName()).replace(/[^/\\]+[/\\][^/\\]+$/, '');

const isOwn = (site: NodeJS.CallSite): boolean => {
  const file = site.getFileName();
  return (
    typeof file === 'string' &&
    /[/\\]/.test(file) &&
    !/node_modules|node:/.test(file) &&
    !file.startsWith(ROOT)
  );
};

const lineAt = (lines: readonly string[], at: number): string | undefined =>
  lines[at]?.trim().replace(/^at (async )?/, '');

/**
 * Returns the first line of the caller's stack that is not of a package or of Node. The file of the running code decides:
 * source maps of packages name files outside of `node_modules`.
 *
 * @param hook function whose callers are meant
 */
export const callerOf = (hook: (...args: never[]) => unknown): string | undefined => {
  const [sites, lines] = stackOf(hook);
  return lineAt(lines(), sites.findIndex(isOwn));
};

/** What starts a promise for work that goes on. A `new Promise` or a race alone does nothing. */
const REACTIONS: readonly unknown[] = ['then', 'catch', 'finally'];
const nameOf = (site: NodeJS.CallSite): string | undefined => site.getFunctionName()?.split('.').at(-1);

/**
 * Returns how to read the line that creates a timer or a promise. Undefined for one of a package, and for a promise without
 * work.
 */
export const creatorOf = (hook: (...args: never[]) => unknown): (() => string | undefined) | undefined => {
  const [sites, lines] = stackOf(hook, CREATOR_LINES);
  const isBuiltIn = (site: NodeJS.CallSite): boolean => !/^(?!node:)./.test(site.getFileName() ?? '');
  const at = sites.findIndex((site) => !isBuiltIn(site));
  if (at < 0 || !isOwn(sites[at]!)) return undefined;
  const isWork = sites.slice(0, at).every((site) => site.getFileName() || REACTIONS.includes(nameOf(site)));
  return isWork ? () => lineAt(lines(), at) : undefined;
};
