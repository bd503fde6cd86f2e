// Compares the public API of dist/ with its reports in docs/api/, one for each entry point of the package. Build before.
//
//   node .ci/api.mjs              fails when they differ, and when a report differs from main without a new changeset
//   node .ci/api.mjs --update     writes the reports
//
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { git, mergeBase } from './git.mjs';
import { root } from './process.mjs';

const REPORTS = 'docs/api';
const { values } = parseArgs({ options: { update: { type: 'boolean', default: false } } });

const manifest = join(root, 'package.json');
const { exports } = JSON.parse(readFileSync(manifest, 'utf8'));
const entries = Object.entries(exports)
  .filter(([, entry]) => entry.require)
  .map(([path, entry]) => ({
    name: path.replace(/^\.\/?/, '') || 'index',
    types: join(root, entry.require.types),
  }));

/** Writes the report of one entry point, or compares it. Returns whether it is up to date. */
const isUpToDate = ({ name, types }, temporary) => {
  const configObject = {
    projectFolder: root,
    mainEntryPointFilePath: types,
    newlineKind: 'lf',
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          ...{ module: 'nodenext', target: 'es2022', skipLibCheck: true, types: ['node'] },
          lib: ['es2022', 'esnext.disposable'],
        },
        files: [types],
      },
    },
    apiReport: {
      enabled: true,
      reportFolder: join(root, REPORTS),
      reportTempFolder: temporary,
      reportFileName: `${name}.api.md`,
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    messages: {
      extractorMessageReporting: { default: { logLevel: 'none' } },
      tsdocMessageReporting: { default: { logLevel: 'none' } },
    },
  };
  const config = ExtractorConfig.prepare({
    configObject,
    packageJsonFullPath: manifest,
    configObjectFullPath: undefined,
  });
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: values.update,
    messageCallback: (message) => (message.handled = true),
  });
  return !apiReportChanged || values.update;
};

const changedSince = (commit, path) =>
  git('diff', '--name-only', commit, '--', path) !== '' ||
  git('ls-files', '--others', '--exclude-standard', '--', path) !== '';

mkdirSync(join(root, REPORTS), { recursive: true });
const temporary = mkdtempSync(join(tmpdir(), 'nest-redis-lock-api-'));
try {
  const different = entries.filter((entry) => !isUpToDate(entry, temporary)).map(({ name }) => name);
  if (different.length > 0)
    throw new Error(
      `the public API of ${different.join(', ')} is not that of ${REPORTS}. Is the change meant? Then run ` +
        `"npm run api -- --update", and add a changeset.`,
    );
  const began = mergeBase();
  if (began && changedSince(began, REPORTS) && !changedSince(began, '.changeset'))
    throw new Error(`the public API has changed since ${began.slice(0, 9)}, and there is no new changeset.`);
  console.log(`api: the reports of ${entries.map(({ name }) => name).join(', ')} are up to date`);
} catch (error) {
  console.error(`api: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
