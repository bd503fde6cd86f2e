import 'reflect-metadata';
import { parseOptions, USAGE, UsageError, type DemoOptions } from './demo/options.js';
import { introduction } from './demo/introduction.js';
import { paintFor } from './demo/paint.js';
import { COLUMNS_TEXT, reportTable, reportText } from './demo/report.js';
import { Resources } from './demo/resources.js';
import { INSTANCES, runSale, type SaleReport } from './demo/run-sale.js';
import { serve } from './demo/serve.js';
import { Stage } from './demo/stage.js';
import { wrap } from './demo/wrap.js';

/** Exit codes: all promises kept; one broken, or the demo failed; wrong usage; interrupted. */
const EXIT = { ok: 0, broken: 1, usage: 2, interrupted: 130 } as const;

const demo = async (options: DemoOptions, signal: AbortSignal): Promise<number> => {
  const { buyers, items, strategies } = options;
  const output = options.json ? process.stderr : process.stdout;
  const paint = paintFor(output);
  const say = (text: string) => void output.write(`${wrap(text)}\n`);

  await using resources = new Resources();
  say('Starting …');
  const stage = await Stage.set(resources, options.store);
  say(stage.locks.description);
  say(`PostgreSQL: ${stage.database.description}.`);
  signal.throwIfAborted();
  if (options.serve) {
    await serve(stage, options, say, signal);
    return EXIT.ok;
  }

  const instances = Math.min(INSTANCES, stage.locks.maxInstances);
  say(introduction(options, instances, paint));
  const reports: SaleReport[] = [];
  for (const strategy of strategies)
    reports.push(await runSale(stage, strategy, { buyers, items, signal, output, paint }));

  say(
    `\n${reportTable(reports, paint)}\n${reportText(reports, { items, instances }, paint)}\n\n${paint('aside', COLUMNS_TEXT)}`,
  );
  const ok = reports.every((report) => report.complaints.length === 0);
  if (options.json) {
    const { locks, database } = stage;
    const result = { ok, locks: locks.description, database: database.description, buyers, items, reports };
    process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
  }
  return ok ? EXIT.ok : EXIT.broken;
};

const main = async (): Promise<number> => {
  const interrupted = new AbortController();
  const interrupt = () => {
    // A second signal ends the demo at once.
    if (interrupted.signal.aborted) process.exit(EXIT.interrupted);
    process.stderr.write('\nTidying up …\n');
    interrupted.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options.help) {
      process.stdout.write(`${USAGE}\n`);
      return EXIT.ok;
    }
    return await demo(options, interrupted.signal);
  } catch (error) {
    if (interrupted.signal.aborted) return EXIT.interrupted;
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n`);
      return EXIT.usage;
    }
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return EXIT.broken;
  }
};

// Resources that are still open after a failure must not keep the process alive.
process.exit(await main());
