import { jsonRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { destinationsReply } from '../schemas.js';

/** Destinations in one reply. */
const MOST = 1_000;

const readDestinations = jsonRoute<QueueDeps>()({
  operationId: 'queue.listDestinations',
  summary:
    'Destinations (scheme, host and port) with deliveries under way or a circuit that is not closed, as the process that answers sees them; at most 1,000.',
  methods: ['GET'],
  path: '/v2/destinations',
  request: {},
  reply: destinationsReply,
  errors: [401, 503],
  handle: async (_input, _context, { places, now }) => {
    const at = (inMs: number) => Math.round(now() + inMs);
    return places.list(MOST).map(({ openedInMs, probeInMs, ...view }) => ({
      ...view,
      ...(openedInMs === undefined ? {} : { openedAt: at(openedInMs) }),
      ...(probeInMs === undefined ? {} : { nextProbeAt: at(probeInMs) }),
    }));
  },
});

export const destinationRoutes = [readDestinations] as const;
