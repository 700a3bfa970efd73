import { runOn } from './kv-redis.js';

runOn('system');
