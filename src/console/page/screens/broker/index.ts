import type { Screen } from '../../data/screen.js';

export const screen: Screen = {
  service: 'broker',
  title: 'Broker',
  backend: 'Kafka',
  order: 3,
  pages: [
    { name: 'topics', title: 'Topics', load: async () => (await import('./topics.js')).TopicsPage },
    { name: 'groups', title: 'Consumer groups', load: async () => (await import('./groups.js')).GroupsPage },
  ],
};
