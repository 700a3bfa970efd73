import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { OutboundError } from './outbound-error.js';

/**
 * A connection to a port of a host through an HTTP proxy (CONNECT; RFC 9110, 9.3.6).
 * @throws OutboundError
 */
export function openTunnel(proxy: URL, hostname: string, port: number, timeoutMs: number): Promise<Socket> {
  const authority = `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
  const start = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const connecting = start({
      host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: proxy.port,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...credentials(proxy) },
      agent: false,
    });
    const timer = setTimeout(() => {
      connecting.destroy();
      reject(new OutboundError('timeout', `the proxy made no connection within ${timeoutMs} ms`));
    }, timeoutMs);
    connecting.on('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new OutboundError('network', `the proxy refused the connection (status ${statusCode})`));
    });
    connecting.on('response', ({ statusCode }) => {
      clearTimeout(timer);
      connecting.destroy();
      reject(new OutboundError('network', `the proxy refused the connection (status ${statusCode})`));
    });
    connecting.on('error', (cause: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(
        new OutboundError('network', `the proxy is not reached (${cause.code ?? 'no answer'})`, { cause }),
      );
    });
    connecting.end();
  });
}

function credentials({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
