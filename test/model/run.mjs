#!/usr/bin/env node
// Checks the models, of the protocol of turns and of the quorum, with spin: every run in all its interleavings, and every
// deliberate mistake, which has to break its promise. Says in one line that it did not run where spin cannot be had.
//
//   node test/model/run.mjs                      minutes
//   node test/model/run.mjs --short              a minute: without the runs that take longest ("long")
//   node test/model/run.mjs --large              larger bounds: hours, and tens of GB of memory (`--memory`, in MB)
//   node test/model/run.mjs --only 'one stops'   runs and mistakes whose names have that in them
//   node test/model/run.mjs --trace 'keeping'    the same, and prints the shortest history that breaks the promise
//
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { APT_DOES, installWithApt, mayInstall } from '../../.ci/apt.mjs';
import { exclusively } from '../../.ci/exclusive.mjs';
import { onPath } from '../../.ci/process.mjs';
import * as quorum from './quorum.runs.mjs';
import * as grants from './grants.runs.mjs';

const modelled = (model, { RUNS, LARGE_RUNS, MISTAKES, PROMISES }) => {
  const ofIt = (list) => list.map((one) => ({ ...one, model, promises: PROMISES }));
  return { runs: ofIt(RUNS), large: ofIt(LARGE_RUNS), mistakes: ofIt(MISTAKES) };
};
const MODELS = [modelled('grants.pml', grants), modelled('quorum.pml', quorum)];

const LIMIT_MS = 15 * 60_000;
const LARGE_LIMIT_MS = 8 * 60 * 60_000;
/** A history as long as this is still read. */
const DEPTHS_OF_TRACES = [40, 55, 70, 90, 120, 160, 220, 300, 500];

const OPTIONS = {
  report: { type: 'string' },
  short: { type: 'boolean' },
  large: { type: 'boolean' },
  only: { type: 'string' },
  trace: { type: 'string' },
  memory: { type: 'string', default: '4096' },
};

/** Runs a program in a folder, and resolves with its output and its error. */
const execute = (folder, program, args, timeout = 0) =>
  new Promise((resolve) => {
    const options = { cwd: folder, encoding: 'utf8', timeout, maxBuffer: 64 * 1024 * 1024 };
    execFile(program, args, options, (error, stdout, stderr) => resolve({ error, stdout, stderr }));
  });

const say = (line) => console.log(`model: ${line}`);

const install = () => {
  if (!onPath('spin')) installWithApt('spin');
};

/** Undefined when the model can be checked here, else why not. */
const missing = async () => {
  if (!onPath('gcc')) return 'gcc is not on the PATH';
  if (onPath('spin')) return undefined;
  if (!mayInstall()) return 'spin is not on the PATH (Debian and Ubuntu: apt-get install spin)';
  say(`installing spin: ${APT_DOES('spin')}`);
  try {
    await exclusively(install);
    return onPath('spin') ? undefined : 'apt-get installed spin, but it is not on the PATH';
  } catch (error) {
    return error.message;
  }
};

const flagsOf = (defines) => Object.entries(defines).map(([name, value]) => `-D${name}=${value}`);

const pathOf = ({ model }) => join(import.meta.dirname, model);

/** Makes the checker of a model. `live`: the process that has to have its turn in the end; else assertions are checked. */
const compile = async (folder, part, { memory, shortest = false, optimized = true }) => {
  const { defines, live } = part;
  const watched = live === undefined ? {} : { WATCHED: live };
  const kind = live === undefined ? ['-DSAFETY', '-DNOCLAIM'] : ['-DNOFAIR'];
  const reach = shortest ? ['-DREACH'] : [];
  const level = optimized ? '-O2' : '-O0';
  for (const [program, ...args] of [
    ['spin', '-a', ...flagsOf({ ...defines, ...watched }), pathOf(part)],
    ['gcc', level, '-w', `-DMEMLIM=${memory}`, ...kind, ...reach, '-o', 'pan', 'pan.c'],
  ]) {
    const { error, stdout, stderr } = await execute(folder, program, args);
    if (error) throw new Error(`${program} failed for ${part.name}: ${stdout}${stderr}`, { cause: error });
  }
};

const search = async (folder, { live }, depth, limitMs) => {
  const kind = live === undefined ? [] : ['-a'];
  const before = Date.now();
  const args = [...kind, '-n', `-m${depth}`, '-w24'];
  const { stdout, error } = await execute(folder, join(folder, 'pan'), args, limitMs);
  const states = Number(/(\d+) states, stored/.exec(stdout)?.[1] ?? NaN);
  const seconds = `${((Date.now() - before) / 1000).toFixed(1)} s`;
  const found = /^pan:\d+: (.*) \(at depth/m.exec(stdout)?.[1];
  const stoppedEarly =
    error || !/errors: \d/.test(stdout) || /not completed|too small|out of memory/i.test(stdout);
  return {
    found,
    states,
    seconds,
    unfinished: !found && stoppedEarly ? (error?.message ?? 'not all was searched') : undefined,
  };
};

const inFolder = async (work) => {
  const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-model-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const broken = (found, { promises }) =>
  Object.entries(promises).find(([, said]) => said.test(found))?.[0] ?? found;

/** Whether all of it holds. */
const check = async (run, settings) => {
  const { name, watched = [] } = run;
  for (const live of [undefined, ...watched]) {
    const part = { ...run, live };
    const what = live === undefined ? name : `${name}: process ${live} has its turn`;
    const { found, states, seconds, unfinished } = await inFolder(async (folder) => {
      await compile(folder, part, settings);
      return search(folder, part, 3_000_000, settings.limitMs);
    });
    if (found) say(`FAILED  ${what}: broken: ${broken(found, run)} (${seconds})`);
    else if (unfinished) say(`FAILED  ${what}: ${unfinished} (${seconds})`);
    else say(`ok      ${what}: ${states.toLocaleString('en')} states, ${seconds}`);
    if (found || unfinished) return false;
  }
  return true;
};

/** Whether the mistake breaks its promise. That is found sooner than gcc would be done with optimizing. */
const catches = async (mistake, settings) => {
  const { name, breaks } = mistake;
  const { found, seconds } = await inFolder(async (folder) => {
    await compile(folder, mistake, { ...settings, optimized: false });
    return search(folder, mistake, 3_000_000, settings.limitMs);
  });
  const promise = found && broken(found, mistake);
  if (promise === breaks) say(`caught  ${name}: breaks "${breaks}" (${seconds})`);
  else
    say(`FAILED  ${name}: ${promise ? `breaks "${promise}", not "${breaks}"` : 'not caught'} (${seconds})`);
  return promise === breaks;
};

const printTrace = (mistake, settings) =>
  inFolder(async (folder) => {
    await compile(folder, mistake, { ...settings, shortest: true });
    for (const depth of DEPTHS_OF_TRACES) {
      const { found } = await search(folder, mistake, depth, settings.limitMs);
      if (!found) continue;
      const { defines, live } = mistake;
      const flags = flagsOf({ ...defines, ...(live !== undefined && { WATCHED: live }) });
      const trail = join(folder, `${mistake.model}.trail`);
      const args = ['-t', '-B', '-T', '-k', trail, ...flags, pathOf(mistake)];
      const replay = await execute(folder, 'spin', args);
      for (const line of replay.stdout.split('\n')) {
        if (/^(ltl|Never claim|#processes|\d+ processes|\s*\d+:\s+proc|spin: |\s*$)/.test(line)) continue;
        if (/^\s*(queue|placeOwner|[a-zA-Z]+(\[\d+\])?) ?[=(]/.test(line)) continue;
        console.log(`    ${line.trim()}`);
      }
      console.log(`    and so "${mistake.breaks}" is broken`);
      return;
    }
    say(`${mistake.name}: no history of at most ${DEPTHS_OF_TRACES.at(-1)} steps`);
  });

/** `--only` and `--trace` go by names. */
const refuseDuplicates = (all) => {
  const names = all.map(({ name }) => name);
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined) throw new Error(`"${duplicate}" is the name of two`);
};

const main = async () => {
  const { values } = parseArgs({ options: OPTIONS, strict: true });
  const why = await missing();
  const report = (result) => values.report && writeFileSync(values.report, JSON.stringify(result));
  if (why) {
    const notRun = `did not run: ${why}`;
    say(notRun);
    report({ passed: 0, failed: 0, notRun: `model: ${notRun}` });
    return;
  }
  const wanted = values.trace ?? values.only;
  const isWanted = ({ name, long }) =>
    (wanted === undefined || name.includes(wanted)) && !(values.short && long);
  const settings = { memory: values.memory, limitMs: values.large ? LARGE_LIMIT_MS : LIMIT_MS };
  const all = MODELS.flatMap(({ runs, large, mistakes }) => [...runs, ...large, ...mistakes]);
  refuseDuplicates(all);
  const runs = MODELS.flatMap(({ runs, large }) => (values.large ? [...runs, ...large] : runs)).filter(
    isWanted,
  );
  const mistakes = MODELS.flatMap(({ mistakes }) => mistakes).filter(isWanted);
  if (runs.length + mistakes.length === 0) throw new Error(`nothing has "${wanted}" in its name`);
  const jobs = [
    ...runs.map((run) => () => check(run, settings)),
    ...mistakes.map((mistake) => async () => {
      if (!(await catches(mistake, settings))) return false;
      if (values.trace !== undefined) await printTrace(mistake, settings);
      return true;
    }),
  ];
  let failed = 0;
  const work = async () => {
    for (let job; (job = jobs.shift());) if (!(await job())) failed++;
  };
  // A large run may need all of the memory, and the lines of a trace belong together.
  const workers = values.large || values.trace !== undefined ? 1 : Math.min(availableParallelism(), 4);
  await Promise.all(Array.from({ length: workers }, work));
  const passed = runs.length + mistakes.length - failed;
  say(`${passed} passed, ${failed} failed`);
  report({ passed, failed });
  if (failed > 0) process.exitCode = 1;
};

await main();
