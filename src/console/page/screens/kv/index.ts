import type { Screen } from '../../data/screen.js';

export const screen: Screen = {
  service: 'kv',
  title: 'Key-value',
  backend: 'Redis',
  order: 1,
  pages: [
    { name: 'keys', title: 'Keys', load: async () => (await import('./keys.js')).KeysPage },
    {
      name: 'commands',
      title: 'Command line',
      load: async () => (await import('./command-line.js')).CommandPage,
    },
    { name: 'live', title: 'Live', load: async () => (await import('./live.js')).LivePage },
    { name: 'server', title: 'Server', load: async () => (await import('./server.js')).ServerPage },
  ],
};
