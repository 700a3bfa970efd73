import { jsonRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { keysReply } from '../schemas.js';

const route = jsonRoute<QueueDeps>();

const getKeys = route({
  operationId: 'queue.getKeys',
  summary: 'The keys with which receivers verify signatures.',
  methods: ['GET'],
  // who has the keys can sign: that is no reading
  isForReaders: false,
  path: '/v2/keys',
  request: {},
  reply: keysReply,
  errors: [401, 403, 503],
  handle: (_input, _context, { keys }) => keys.refresh(),
});

const rotateKeys = route({
  operationId: 'queue.rotateKeys',
  audit: 'administrative',
  summary: 'The next signing key becomes the current one, and a new one the next.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/keys/rotate',
  request: {},
  reply: keysReply,
  errors: [401, 403, 503],
  handle: (_input, _context, { keys }) => keys.rotate(),
});

export const keyRoutes = [getKeys, rotateKeys] as const;
