import { broker } from './broker/index.js';
import { kv } from './kv/index.js';
import { queue } from './queue/index.js';
import { vector } from './vector/index.js';
/** Every backend family that Portico serves. A fifth one is a folder and a line here. */
export const services = [
    kv,
    vector,
    broker,
    queue,
];
//# sourceMappingURL=index.js.map