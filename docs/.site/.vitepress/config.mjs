// The site of docs/. Its start page is the README, and docs/README.md is its menu. The address of the repository and the name of
// the library are those of package.json.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path) => readFileSync(join(root, path), 'utf8');
const { name, description, homepage, exports } = JSON.parse(read('package.json'));

// GitHub Pages has a project below its name.
const base = `/${name}/`;
const rewrites = (path) => path.replace(/README\.md$/, 'index.md');
const isPage = (path) => /^(README|(docs\/(?!api\/)|reference\/).+)\.md$/.test(path);

/**
 * The one rule for links. A link to a page of the site stays in the site. A link to another file of the repository leads to the
 * repository.
 *
 * @param page path of the page that has the link, from the root of the repository.
 */
const linkOnSite = (page, link) => {
  const published = `${homepage}/blob/main/`;
  if (link.startsWith('#') || (/^[a-z]+:/.test(link) && !link.startsWith(published))) return link;
  const [target, ...anchor] = link.split(/(?=#)/);
  const path = link.startsWith(published) ? target.slice(published.length) : join(dirname(page), target);
  if (isPage(path)) return `/${rewrites(path)}${anchor.join('')}`;
  const isFolder = statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory();
  return `${homepage}/${isFolder ? 'tree' : 'blob'}/main/${path}${anchor.join('')}`;
};

const linksOnSite = (md) => {
  md.core.ruler.push('links-on-site', ({ tokens, env }) => {
    const page = relative(root, env.realPath ?? env.path);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'link_open') token.attrSet('href', linkOnSite(page, token.attrGet('href')));
    }
  });
};

const markdownOnSite = (page) =>
  read(page).replaceAll(
    /\]\(([^)\s]+\.md(?:#[^)\s]*)?)\)/g,
    (_, link) => `](${linkOnSite(page, link).replace(/^\//, base)})`,
  );

/** Pages import Vue, which is not installed where they are. While they are rendered, Node finds it from here. */
const vueOfSite = {
  name: 'vue-of-the-site',
  enforce: 'pre',
  resolveId: (id, _importer, { ssr }) =>
    ssr && /^vue(\/server-renderer)?$/.test(id) ? { id, external: true } : undefined,
};

/** The tables of docs/README.md: a group for each heading, an item for each row. The first group is open. */
const menu = read('docs/README.md')
  .split(/^## /m)
  .map((section, at) => ({
    text: section.split('\n')[0],
    collapsed: at > 1,
    items: [...section.matchAll(/^\| \[(.+?)\]\((\S+)\)/gm)].map(([, text, link]) => ({
      text,
      link: linkOnSite('docs/README.md', link),
    })),
  }))
  .filter(({ items }) => items.length > 0);

const reference = {
  text: 'API',
  collapsed: true,
  items: Object.entries(exports)
    .filter(([, entry]) => entry.require)
    .map(([path]) => ({
      text: path.replace('.', name),
      link: `/reference/${path.replace(/^\.$/, '').replace('.', 'entries')}`,
    })),
};

/** The search lists a page before a section of another page, and pages for users before the others. Browsers run this function. */
const boostDocument = (id, _term, { titles }) =>
  (titles.length === 0 ? 1.5 : 1) *
  (/\/(benchmarks|decisions|reference|redisson-compatibility)\b/.test(id) ? 0.5 : 1);

export default {
  title: name,
  // Browsers ask for a file of their own choice otherwise.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  description,
  base,
  srcDir: root,
  srcExclude: ['!(README.md|docs|reference)/**', 'docs/api/**'],
  outDir: 'dist',
  cacheDir: 'node_modules/.vitepress',
  rewrites,
  markdown: {
    attrs: { disable: true },
    // As GitHub names headings: links have these names.
    anchor: {
      slugify: (heading) =>
        heading
          .toLowerCase()
          .replace(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
    },
    config: linksOnSite,
  },
  vite: {
    // The README names its pictures from the root, without a dot.
    resolve: { alias: [{ find: /^docs\//, replacement: join(root, 'docs/') }] },
    plugins: [vueOfSite],
    // Pages are no entries to search for packages, nor is the page of the sample app.
    optimizeDeps: { entries: [] },
    // The index of the search is one file.
    build: { chunkSizeWarningLimit: 4_000 },
  },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
    sidebar: [...menu, reference],
    nav: [{ text: 'Repository', link: homepage }],
    outline: [2, 3],
  },
  /** Writes each page also as Markdown, and llms.txt, whose links lead to these. */
  buildEnd: ({ outDir, pages }) => {
    for (const page of pages) writeFileSync(join(outDir, rewrites(page)), markdownOnSite(page));
    writeFileSync(join(outDir, 'llms.txt'), markdownOnSite('docs/llms.txt'));
  },
};
