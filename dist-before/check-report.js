import { configLeaves, enabledServices } from './config.js';
function setVariables(config) {
    return configLeaves().flatMap(({ path, env }) => {
        if (env === undefined)
            return [];
        let value = { ...config, ...config.services };
        for (const step of path)
            value = value?.[step === '#' ? '0' : step];
        const empty = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
        return empty ? [] : [env];
    });
}
export function checkReport(config) {
    const host = config.http.host.includes(':') ? `[${config.http.host}]` : config.http.host;
    const url = `http://${host}:${config.http.port}`;
    const enabled = enabledServices(config);
    const backends = {
        redis: 'unused',
        postgres: 'unused',
        kafka: 'unused',
        rabbitmq: 'unused',
    };
    for (const { service, section } of enabled) {
        for (const { name, given } of service.backends(section)) {
            if (!given)
                backends[name] = 'needed';
            else if (backends[name] === 'unused')
                backends[name] = 'given';
        }
    }
    const urls = enabled.map(({ service, section }) => [
        service.name,
        `${url}${service.mounts(section)[0]?.path ?? ''}`.replace(/\/$/, ''),
    ]);
    return {
        url,
        services: enabled.map(({ service }) => service.name),
        urls: Object.fromEntries(urls),
        backends,
        set: setVariables(config),
    };
}
//# sourceMappingURL=check-report.js.map