import type { Screen } from '../../data/screen.js';

export const screen: Screen = {
  service: 'vector',
  title: 'Vector',
  backend: 'Postgres',
  order: 2,
  pages: [
    { name: 'records', title: 'Records', load: async () => (await import('./records.js')).RecordsPage },
    { name: 'search', title: 'Search', load: async () => (await import('./search.js')).SearchPage },
    { name: 'recall', title: 'Recall', load: async () => (await import('./recall.js')).RecallPage },
    { name: 'map', title: 'Map', load: async () => (await import('./map.js')).MapPage },
  ],
};
