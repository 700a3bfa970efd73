import { graphBody, renameBody } from '../schemas/reads.js';
import { namespacesReply, renameReply, successReply } from '../schemas/replies.js';
import { bothRoutes, indexRoute, namespaceRoute, successAfter } from './index-route.js';

const list = indexRoute({
  operationId: 'vector.listNamespaces',
  summary: 'Names of all namespaces, the default one (empty) first.',
  path: '/list-namespaces',
  request: {},
  reply: namespacesReply,
  handle: async (index, _input, { signal }) => ({ result: await index.reader.namespaces(signal) }),
});

const remove = namespaceRoute({
  operationId: 'vector.deleteNamespace',
  audit: 'destructive',
  summary: 'Deletes a namespace and its records.',
  path: '/delete-namespace',
  writes: true,
  errors: [404],
  request: {},
  reply: successReply,
  handle: (index, { namespace }, { signal }) => successAfter(index.namespaces.delete(namespace, signal)),
});

const removeDefault = indexRoute({
  operationId: 'vector.deleteDefaultNamespace',
  isUndocumented: true,
  summary: 'Refused: the default namespace cannot be deleted.',
  path: '/delete-namespace',
  writes: true,
  request: {},
  reply: successReply,
  handle: (index, _input, { signal }) => successAfter(index.namespaces.delete('', signal)),
});

const rename = indexRoute({
  operationId: 'vector.renameNamespace',
  audit: 'administrative',
  summary: 'Gives a namespace another name.',
  path: '/rename-namespace',
  writes: true,
  errors: [404, 409],
  request: { body: renameBody },
  reply: renameReply,
  handle: async (index, { body }, { signal }) => {
    await index.namespaces.rename(body, signal);
    return { result: { renamed: true } };
  },
});

const graph = bothRoutes({
  operationId: 'vector.deferGraph',
  summary: 'Leaves the graph of a namespace for later, as for a bulk import, or has it built now.',
  path: '/graph',
  writes: true,
  request: { body: graphBody },
  reply: successReply,
  handle: (index, { namespace, body }, { signal }) =>
    successAfter(index.namespaces.deferGraph(namespace, body.defer, signal)),
});

export const namespaceRoutes = [list, remove, removeDefault, rename, ...graph];
