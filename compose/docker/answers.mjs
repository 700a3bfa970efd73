import { get } from 'node:http';

/** The health check of the image: `node answers.mjs /livez`, where the gateway's own pages are. */
const { PORTICO_HTTP_OPERATIONS_PORT, PORTICO_HTTP_PORT } = process.env;
const port = PORTICO_HTTP_OPERATIONS_PORT || PORTICO_HTTP_PORT || 8070;
const path = process.argv[2] ?? '/livez';
get({ host: '127.0.0.1', port, path, timeout: 3_000 }, ({ statusCode }) =>
  process.exit(statusCode === 200 ? 0 : 1),
)
  .once('timeout', () => process.exit(1))
  .once('error', () => process.exit(1));
