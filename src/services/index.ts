import { broker } from './broker/index.js';
import { kv } from './kv/index.js';
import { queue } from './queue/index.js';
import type { Service } from './service.js';
import { vector } from './vector/index.js';

/** Every backend family that Portico serves. A fifth one is a folder and a line here. */
export const services: readonly Service[] = [
  kv as Service,
  vector as Service,
  broker as Service,
  queue as Service,
];
