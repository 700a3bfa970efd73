import type { Logger } from '../../lib/logger.js';
import type { DestinationPlaces } from './destinations/destination-places.js';
import type { AcceptTools } from './intake/accept.js';
import type { AddressTools } from './intake/addressed-messages.js';
import type { DailyUsage } from './intake/usage.js';
import type { FlowControls } from './order/flow-controls.js';
import type { HeldMessages } from './order/held-messages.js';
import type { OrderedQueues } from './order/ordered-queues.js';
import type { QueueDeletions } from './order/queue-deletions.js';
import type { Schedules } from './schedules/schedules.js';
import type { DeadLetterStore } from './store/dead-letter-store.js';
import type { EventLog } from './store/event-log.js';
import type { ListingConnections } from './store/listing-connections.js';
import type { MessageIndex } from './store/message-index.js';
import type { SigningKeys } from './store/signing-keys.js';
import type { DeadRuns } from './workflow/dead-runs.js';
import type { RunBatchRows } from './workflow/run-batch-rows.js';
import type { RunChanges } from './workflow/run-changes.js';
import type { RunRecords } from './workflow/run-record.js';
import type { RunRows } from './workflow/run-rows.js';
import type { RunSearch } from './workflow/run-search.js';
import type { Runs } from './workflow/runs.js';
import type { Waits } from './workflow/waits.js';

/** What the routes work with. */
export interface QueueDeps extends AddressTools {
  readonly accept: AcceptTools;
  readonly usage: DailyUsage;
  readonly index: MessageIndex;
  readonly deadLetters: DeadLetterStore;
  readonly events: EventLog;
  readonly listings: ListingConnections;
  readonly queues: OrderedQueues;
  readonly deletions: QueueDeletions;
  readonly flows: FlowControls;
  readonly heldMessages: HeldMessages;
  readonly places: DestinationPlaces;
  readonly schedules: Schedules;
  readonly keys: SigningKeys;
  readonly workflow: WorkflowParts;
  readonly log: Logger;
}

/** What workflow runs are made of. */
export interface WorkflowParts {
  readonly runs: Runs;
  readonly rows: RunRows;
  readonly batchRows: RunBatchRows;
  readonly changes: RunChanges;
  readonly waits: Waits;
  readonly search: RunSearch;
  readonly dead: DeadRuns;
  readonly records: RunRecords;
}
