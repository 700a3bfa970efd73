import type { Logger } from '../../lib/logger.js';
import type { AcceptTools } from './accept.js';
import type { AddressTools } from './addressed-messages.js';
import type { DeadLetterStore } from './dead-letter-store.js';
import type { DestinationPlaces } from './destination-places.js';
import type { EventLog } from './event-log.js';
import type { FlowControls } from './flow-controls.js';
import type { MessageIndex } from './message-index.js';
import type { OrderedQueues } from './ordered-queues.js';
import type { QueueDeletions } from './queue-deletions.js';
import type { Schedules } from './schedules.js';
import type { SigningKeys } from './signing-keys.js';
import type { Turns } from './turns.js';
import type { DailyUsage } from './usage.js';

/** What the routes work with. */
export interface QueueDeps extends AddressTools {
  readonly accept: AcceptTools;
  readonly usage: DailyUsage;
  readonly index: MessageIndex;
  readonly deadLetters: DeadLetterStore;
  readonly events: EventLog;
  readonly queues: OrderedQueues;
  readonly deletions: QueueDeletions;
  readonly flows: FlowControls;
  readonly turns: Turns;
  readonly places: DestinationPlaces;
  readonly schedules: Schedules;
  readonly keys: SigningKeys;
  readonly log: Logger;
}
