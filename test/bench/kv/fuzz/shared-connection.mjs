/** Settings that no request may change. */
const FIXED = [
  'dir',
  'dbfilename',
  'logfile',
  'requirepass',
  'port',
  'bind',
  'maxclients',
  'appendonly',
  'save',
  'proto-max-bulk-len',
];

/**
 * What of the gateway's connections and of the server's settings must not change, read past the gateway.
 * @param {import('ioredis').Redis} redis
 * @returns {Promise<{ ids: string[], spoiled: string[], settings: string }>}
 */
export async function lookAt(redis) {
  const clients = String(await redis.client('LIST'))
    .trim()
    .split('\n')
    .map(fieldsOf);
  const own = clients.filter(({ name }) => name === 'portico');
  const settings = await Promise.all(FIXED.map((name) => redis.config('GET', name)));
  const [role] = await redis.role();
  return {
    ids: own.map(({ id }) => id),
    // in no transaction, no subscription, no other database, no other protocol, and not a MONITOR or a replica
    spoiled: own
      .filter(({ db, sub, psub, multi, flags, resp = '2' }) =>
        [db !== '0', sub !== '0', psub !== '0', multi !== '-1', flags !== 'N', resp !== '2'].some(Boolean),
      )
      .map((client) => JSON.stringify(client)),
    settings: JSON.stringify([role, settings]),
  };
}

function fieldsOf(line) {
  return Object.fromEntries(line.split(' ').map((field) => field.split(/=(.*)/s)));
}

/**
 * What has changed between two looks.
 * @param {Awaited<ReturnType<typeof lookAt>>} before
 * @param {Awaited<ReturnType<typeof lookAt>>} after
 * @returns {string[]}
 */
export function changes(before, after) {
  const lost = before.ids.filter((id) => !after.ids.includes(id));
  return [
    ...lost.map((id) => `the gateway's connection ${id} to Redis was lost`),
    ...after.spoiled.map((client) => `the gateway's connection to Redis has another state: ${client}`),
    ...(before.settings === after.settings
      ? []
      : [`settings of Redis: ${before.settings} became ${after.settings}`]),
  ];
}
