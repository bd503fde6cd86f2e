import 'reflect-metadata';
import { STORES } from './demo/desks/index.js';
import { Board } from './demo/live/board.js';
import { parseOptions, USAGE, UsageError, type DemoOptions } from './demo/options.js';
import { introduction } from './demo/introduction.js';
import { Buttons } from './demo/page/actions.js';
import { PageServer } from './demo/page/page-server.js';
import { paintFor } from './demo/paint.js';
import { COLUMNS_TEXT, reportNotes, reportTable, reportText } from './demo/report.js';
import { Narrator } from './demo/narrator.js';
import { Resources } from './demo/resources.js';
import { INSTANCES, runSale, type SaleReport } from './demo/run-sale.js';
import { serve } from './demo/serve.js';
import { Stage, WATCHDOG_MS } from './demo/stage.js';

/** Exit codes: all promises kept; one broken, or the demo failed; wrong usage; interrupted. */
const EXIT = { ok: 0, broken: 1, usage: 2, interrupted: 130 } as const;

const MORE = `npm start -- --all compares five strategies with 2,000 buyers, in 2.5 minutes.
npm start -- --serve keeps the app up, and a page on which you stop and kill its instances.`;

const demo = async (options: DemoOptions, signal: AbortSignal): Promise<number> => {
  const { buyers, items, strategies } = options;
  const output = options.json ? process.stderr : process.stdout;
  const paint = paintFor(output);
  const narrator = new Narrator(output);

  const board = new Board(WATCHDOG_MS, STORES[options.store].title);
  await using resources = new Resources();
  const buttons = new Buttons();
  const actions = options.serve ? buttons : undefined;
  const { url: page } = resources.use(await PageServer.start({ board, actions }));
  narrator.say(`Watch it on ${page}`);
  const stage = await Stage.set(resources, options, narrator);
  narrator.say(stage.locks.description);
  narrator.say(`PostgreSQL: ${stage.database.description}.`);
  signal.throwIfAborted();
  if (options.serve) {
    await serve({ page, buttons, stage, board, narrator, signal }, options);
    return EXIT.ok;
  }

  const instances = Math.min(INSTANCES, stage.locks.maxInstances);
  narrator.say(introduction(options, instances, paint));
  const reports: SaleReport[] = [];
  for (const strategy of strategies)
    reports.push(await runSale(stage, strategy, { board, buyers, items, signal, narrator, output, paint }));

  narrator.say(`\n${reportText(reports, { items, instances }, paint)}\n\n${reportTable(reports, paint)}`);
  narrator.say(`${reportNotes(reports)}\n${paint('aside', COLUMNS_TEXT)}`);
  if (!options.all) narrator.say(`\n${MORE}`);
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
