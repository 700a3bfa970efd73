import { z } from 'zod';
import { isLoopback } from '../lib/loopback.js';

/** The section `console` of the configuration. */
export const consoleSettings = z.strictObject({
  enabled: z
    .boolean()
    .nullable()
    .default(null)
    .describe('Whether the console is served at /console/. null: where http.host is a loopback address.'),
});

export type ConsoleSettings = z.output<typeof consoleSettings>;

export function isConsoleServed({ enabled }: ConsoleSettings, host: string): boolean {
  return enabled ?? isLoopback(host);
}
