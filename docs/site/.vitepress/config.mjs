import { defineConfig } from 'vitepress';

const pages = (...list) => list.map(([text, name]) => ({ text, link: `/${name}` }));

/** What the pages link to and the site does not have: files of the repository. */
const OUTSIDE = [/^(\.\/)?(\.\.\/)+(README|LICENSE|config|compose|test|src)/, /examples/];

/** Anchors as GitHub makes them: the pages are read there as well. */
const slugify = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');

// biome-ignore lint/style/noDefaultExport: the form that VitePress reads
export default defineConfig({
  title: 'Portico',
  description: 'One HTTP front for the Redis, Kafka, Postgres/pgvector and RabbitMQ that you already run',
  srcDir: 'pages',
  outDir: '../../.portico/site',
  cacheDir: '../../.portico/site-cache',
  rewrites: { 'decisions/README.md': 'decisions/index.md' },
  ignoreDeadLinks: OUTSIDE,
  markdown: {
    anchor: { slugify },
    // <words> of the tables are words
    html: false,
    config: (md) => {
      // what pages say to tests
      md.core.ruler.before('normalize', 'comments', (state) => {
        state.src = state.src.replace(/^<!--[^\n]*-->\n/gm, '');
      });
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: [
      {
        text: 'Services',
        items: pages(
          ['kv: Redis', 'kv'],
          ['vector: Postgres', 'vector'],
          ['broker: Kafka', 'broker'],
          ['queue: RabbitMQ', 'queue'],
          ['Workflows', 'workflow'],
        ),
      },
      {
        text: 'Use',
        items: pages(
          ['Deploy', 'deploy'],
          ['Migrate', 'migrate'],
          ['Moving data', 'moving'],
          ['Tokens', 'tokens'],
          ['Test in CI', 'test-in-ci'],
          ['Troubleshoot', 'troubleshoot'],
          ['Docker', 'docker'],
          ['Native programs', 'native-programs'],
        ),
      },
      {
        text: 'Operate',
        items: pages(
          ['Operations', 'operations'],
          ['Configuration', 'configuration'],
          ['Security', 'security'],
        ),
      },
      {
        text: 'Work on it',
        items: pages(
          ['Architecture', 'architecture'],
          ['Decisions', 'decisions/'],
          ['Contributing', 'contributing'],
          ['Changelog', 'changelog'],
        ),
      },
    ],
  },
});
