import { z } from 'zod';
import type { JsonRoute, RouteContext } from '../../../http/route.js';
import type { VectorDeps } from '../deps.js';
import { indexParams } from '../schemas/indexes.js';
import { namespaceParams } from '../schemas/names.js';
import type { ManagedDeps } from './admin-routes.js';

interface Input {
  readonly params: { readonly index: string };
}

/** The routes of an index below its name, for indexes that come and go. */
export function managedRoutes(routes: readonly JsonRoute<VectorDeps>[]): JsonRoute<ManagedDeps>[] {
  return routes.map((route) => {
    const { handle, bodyFlow, request, path, ...rest } = route;
    const params =
      request?.params === undefined
        ? indexParams
        : z.object({ ...indexParams.shape, ...namespaceParams.shape });
    const depsOf = async (input: unknown, { principal }: RouteContext, { indexes }: ManagedDeps) => ({
      index: await indexes.find((input as Input).params.index, principal),
    });
    return {
      ...rest,
      path: `/:index${path}`,
      request: { ...request, params },
      handle: async (input, context, deps) => handle(input, context, await depsOf(input, context, deps)),
      ...(bodyFlow === undefined
        ? {}
        : {
            bodyFlow: {
              takes: bodyFlow.takes,
              handle: async (input, context, deps) =>
                bodyFlow.handle(input, context, await depsOf(input, context, deps)),
            },
          }),
    } satisfies JsonRoute<ManagedDeps>;
  });
}
