// The suites of kv.test.ts once more, on the Redis of this system, which may be much older than this run's. The order
// counts: the choice comes before the tests.
import '../../support/kv/on-system-redis.js';
import './commands.test.js';
