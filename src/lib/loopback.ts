import { isIPv6 } from 'node:net';

/** Whether only this machine can connect to a server that listens on `host`. */
export function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || /^127\.\d+\.\d+\.\d+$/.test(host) || (isIPv6(host) && /^(0*:)*:?0*1$/.test(host))
  );
}
