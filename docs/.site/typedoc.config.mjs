// Makes the reference of the API from the docstrings: a page for each entry point of the package, in /reference.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const { name: library, exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));

/** @type {import('typedoc').TypeDocOptions & import('typedoc-plugin-markdown').PluginOptions} */
export default {
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: Object.values(exports)
    .flatMap(({ require }) => require?.types ?? [])
    .map((types) => at(types.replace('./dist/types/', 'lib/').replace('.d.ts', '.ts'))),
  tsconfig: at('lib/tsconfig.build.json'),
  out: at('reference'),
  logLevel: 'Warn',
  // `npm run types` checks types, and `npm run api` shows what an entry point exports.
  skipErrorChecking: true,
  validation: { notExported: false },
  excludeInternal: true,
  excludePrivate: true,
  disableSources: true,
  readme: 'none',
  outputFileStrategy: 'modules',
  // The name `index` belongs to the page of lib/index.ts.
  entryFileName: 'contents',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  pageTitleTemplates: {
    index: 'API',
    module: ({ name }) => (name === 'index' ? library : name.replace('entries', library)),
    member: '{name}',
  },
  // The names of headings are those of the site, and TypeDoc counts equal ones in another way.
  useHTMLAnchors: true,
  anchorPrefix: 'api-',
  // A page is a template of Vue, in which `<` begins an element.
  useHTMLEncodedBrackets: true,
  sanitizeComments: true,
};
