const STACK_LINES = 50;

const isOwn = (file: string | null | undefined): boolean =>
  typeof file === 'string' && /[/\\]/.test(file) && !/node_modules|node:/.test(file);

/**
 * Returns the first line of the caller's stack that is not of a package or of Node. The file of the running code decides:
 * source maps of packages name files outside of `node_modules`.
 *
 * @param hook function whose callers are meant
 */
export const callerOf = (hook: (...args: readonly unknown[]) => unknown): string | undefined => {
  const { stackTraceLimit } = Error;
  const prepareStackTrace = Reflect.get(Error, 'prepareStackTrace');
  try {
    Error.stackTraceLimit = STACK_LINES;
    const raw: { stack?: unknown } = {};
    Error.prepareStackTrace = (_, sites) => sites;
    Error.captureStackTrace(raw, hook);
    const sites = raw.stack as readonly NodeJS.CallSite[];
    const own = sites.findIndex((site) => isOwn(site.getFileName()));
    Error.prepareStackTrace = prepareStackTrace;
    const mapped: { stack?: unknown } = {};
    Error.captureStackTrace(mapped, hook);
    const lines = String(mapped.stack)
      .split('\n')
      .filter((line) => /^\s*at /.test(line));
    return lines[own]?.trim().replace(/^at (async )?/, '');
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
};
