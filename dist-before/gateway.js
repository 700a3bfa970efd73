import { enabledServices } from './config.js';
import { buildApp } from './http/app.js';
import { HttpError } from './http/errors.js';
import { Health } from './http/health.js';
import { HttpCore } from './http/http-core.js';
import { Metrics } from './http/metrics.js';
import { Operations } from './http/operations.js';
import { listen } from './http/server.js';
import { Lifecycle } from './lib/lifecycle.js';
import { unavailableInstances } from './services/unavailable.js';
/** So long the ports stay closed for backends that are about to answer; one that is away holds up no start beyond it. */
const START_WAIT_MS = 2_000;
/** The composition root: every service behind one HTTP front. */
export function createGateway(config, options) {
    const { log } = options;
    const lifecycle = new Lifecycle(log);
    const core = new HttpCore(config.http, new Metrics(), log);
    lifecycle.onStop('deadlines', () => core.release());
    const start = async () => {
        const instances = openServices(config, lifecycle, options);
        const health = new Health(healthTargets(instances));
        core.metrics.reportBackends(() => health.states());
        await health.whenUp(START_WAIT_MS);
        const operations = new Operations(core, health, options.openapi);
        const servers = await openPorts(config, core, instances, operations);
        lifecycle.onStop('http', () => drainAll(core, servers, config.http.stopTimeoutMs), config.http.stopTimeoutMs + 2_000);
        const port = servers[0].port;
        log.info({ host: config.http.host, port, instances: instances.map(nameOf) }, 'listening');
        return { port };
    };
    return {
        start: () => start().catch(async (error) => {
            await lifecycle.stop();
            throw error;
        }),
        stop: () => {
            core.stopping = true;
            return lifecycle.stop();
        },
    };
}
function openServices(config, lifecycle, { log, now = Date.now }) {
    return enabledServices(config).flatMap(({ service, section }) => {
        const runtime = { log: log.child({ service: service.name }), lifecycle, now };
        const instances = section.missing === null
            ? service.open(section, runtime)
            : unavailableInstances(service, section, section.missing);
        return instances.map((instance) => ({ service: service.name, instance }));
    });
}
function healthTargets(instances) {
    return instances.flatMap(({ service, instance }) => instance.backends.map((backend) => ({ service, instance: instance.name, backend })));
}
function nameOf({ service, instance }) {
    return `${service}.${instance.name} at ${instance.path}`;
}
/** The main port first, then the operations' own and those of single instances; all or none. */
async function openPorts(config, core, instances, operations) {
    const { host, port, operationsPort } = config.http;
    const all = instances.map(({ instance }) => ({ path: instance.path, instance }));
    const wanted = [{ port, mounts: all, pages: operationsPort === null ? operations : undefined }];
    if (operationsPort !== null)
        wanted.push({ port: operationsPort, mounts: [], pages: operations });
    for (const { instance } of instances) {
        if (instance.port !== null)
            wanted.push({ port: instance.port, mounts: [{ path: '/', instance }], pages: undefined });
    }
    const servers = [];
    try {
        for (const { port: wantedPort, mounts, pages } of wanted) {
            servers.push(await listen(buildApp(core, mounts, pages), host, wantedPort, core));
        }
    }
    catch (error) {
        await Promise.all(servers.map((server) => server.drain(0)));
        throw error;
    }
    return servers;
}
/** What has not ended shortly before the cap is answered 503, so that no client is cut without a reply. */
async function drainAll(core, servers, capMs) {
    const lastCall = setTimeout(() => core.failAll(() => new HttpError('stopping')), Math.max(0, capMs - 1_000));
    try {
        await Promise.all(servers.map((server) => server.drain(capMs)));
    }
    finally {
        clearTimeout(lastCall);
    }
}
//# sourceMappingURL=gateway.js.map