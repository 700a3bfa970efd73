import type { Conclusion, FailingMessage } from '../message/conclusion.js';
import type { AttemptResult } from '../message/decide.js';
import type { ClaimedMessage } from '../message/message.js';

/** What deliveries need of the workflow runs that messages belong to. */
export interface RunDeliveries {
  /** The message with the body that this attempt brings. */
  dressed(message: ClaimedMessage): Promise<ClaimedMessage>;
  /** What an answer is worth to a run: itself, or another one where the run must fail at once. */
  judged(
    message: ClaimedMessage,
    result: AttemptResult,
  ): Promise<{ result: AttemptResult; isRefused: boolean }>;
  /** A message of role `timer` is due: it goes to nobody, and ends a wait. */
  expire(message: ClaimedMessage, signal: AbortSignal): Promise<void>;
  /** Whether more follows from an outcome than from that of other messages. */
  concludes(conclusion: Conclusion): boolean;
  /** Writes such an outcome and what follows from it. @returns false when the claim was lost, and nothing was written */
  conclude(conclusion: Conclusion, signal: AbortSignal): Promise<boolean>;
  /** Fails the run of a message whose retries are used up. @returns false when that was done before */
  deadLetter(failing: FailingMessage, dlqId: string, signal: AbortSignal): Promise<boolean>;
}
