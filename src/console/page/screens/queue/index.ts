import type { Screen } from '../../data/screen.js';

export const screen: Screen = {
  service: 'queue',
  title: 'Queue',
  backend: 'RabbitMQ',
  order: 4,
  pages: [
    { name: 'log', title: 'Log', load: async () => (await import('./log.js')).LogPage },
    {
      name: 'dead-letters',
      title: 'Dead letters',
      load: async () => (await import('./dead-letters.js')).DeadLettersPage,
    },
    { name: 'publish', title: 'Publish', load: async () => (await import('./publish.js')).PublishPage },
    {
      name: 'schedules',
      title: 'Schedules',
      load: async () => (await import('./schedules.js')).SchedulesPage,
    },
    {
      name: 'groups',
      title: 'URL groups',
      load: async () => (await import('./url-groups.js')).UrlGroupsPage,
    },
    {
      name: 'queues',
      title: 'Ordered queues',
      load: async () => (await import('./ordered-queues.js')).OrderedQueuesPage,
    },
    { name: 'flow', title: 'Flow control', load: async () => (await import('./flow-control.js')).FlowPage },
    { name: 'runs', title: 'Workflow runs', load: async () => (await import('./runs.js')).RunsPage },
  ],
};
