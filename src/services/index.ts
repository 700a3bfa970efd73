import { kv } from './kv/index.js';
import type { Service } from './service.js';

/** Every backend family that Portico serves. A fifth one is a folder and a line here. */
export const services: readonly Service[] = [kv as Service];
