import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../lib/backoff.js';
import { InterruptedError } from './attempt.js';
import { callbackMessages } from './callbacks.js';
import { decide } from './decide.js';
import { newDeadLetterId } from './message.js';
/** So many claims without an outcome mean that the message kills whoever delivers it. */
const MAX_LOST_CLAIMS = 20;
/** An outcome that Postgres does not take is repeated for so long, in ms: RabbitMQ takes a token back after 30 min. */
const CONCLUDE_MS = 10 * 60_000;
const CONFIRM_MS = 10_000;
/** Shortest wait of a token that came too early or while its message was being delivered, in ms. */
const MIN_WAIT_MS = 125;
/** Works off one token: claim, attempt, outcome, and what follows. Nothing of it lives only here. */
export class Worker {
    tools;
    constructor(tools) {
        this.tools = tools;
    }
    /**
     * Resolves when the token has served: RabbitMQ holds whatever comes after it. Rejects when it must come again.
     * @param signal aborts when the gateway cannot wait any longer
     */
    async process(token, signal) {
        const claim = await this.tools.store.claim(token);
        switch (claim.kind) {
            case 'over':
                return;
            case 'busy':
                return this.publish(token, Math.max(MIN_WAIT_MS, claim.waitMs), signal);
            case 'stale':
                // its follower may have been lost in a crash right after the outcome; one token too many does no harm
                return this.publish({ id: token.id, attempt: claim.attempt }, claim.waitMs, signal);
            case 'claimed':
                return this.work(claim.message, signal);
        }
    }
    async work(message, signal) {
        const { leases, store } = this.tools;
        leases.hold(message);
        try {
            const conclusion = await this.attempt(message, signal);
            if (!(await this.conclude(conclusion, signal))) {
                this.tools.log.warn({ id: message.id }, 'queue: an outcome came after the claim was lost');
                return;
            }
            leases.letGo(message);
            await this.publishFollowers(conclusion, signal);
        }
        catch (error) {
            if (error instanceof InterruptedError)
                await store.release(message);
            throw error;
        }
        finally {
            leases.letGo(message);
        }
    }
    async attempt(message, signal) {
        const { deliver, now } = this.tools;
        const lostClaims = message.claims - message.attempt - 1;
        const result = lostClaims < MAX_LOST_CLAIMS
            ? await deliver(message, signal)
            : { kind: 'failure', reason: `given up: ${lostClaims} attempts ended without an outcome` };
        const decision = lostClaims < MAX_LOST_CLAIMS
            ? decide({ retried: message.attempt, maxRetries: message.maxRetries, result }, now())
            : { kind: 'dead' };
        const dlqId = decision.kind === 'dead' ? newDeadLetterId(now()) : undefined;
        return {
            message,
            result,
            decision,
            dlqId,
            callbacks: callbackMessages(message, result, decision, dlqId, now()),
        };
    }
    /** The destination has been called: its answer is worth waiting for Postgres, or the message would be delivered again. */
    async conclude(conclusion, signal) {
        const giveUpAt = performance.now() + CONCLUDE_MS;
        for (let failures = 0;; failures++) {
            try {
                return await this.tools.store.conclude(conclusion);
            }
            catch (err) {
                if (signal.aborted || performance.now() > giveUpAt)
                    throw err;
                this.tools.log.warn({ err, id: conclusion.message.id }, 'queue: an outcome was not written yet');
                await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
            }
        }
    }
    async publishFollowers({ message, decision, callbacks }, signal) {
        const followers = callbacks.map(({ id, delayMs }) => this.publish({ id, attempt: 0 }, delayMs, signal));
        if (decision.kind === 'retry')
            followers.push(this.publish({ id: message.id, attempt: message.attempt + 1 }, decision.delayMs, signal));
        await Promise.all(followers);
    }
    /** Until RabbitMQ has it or the gateway stops; what is missing then, the sweeper finds. */
    async publish(token, delayMs, signal) {
        const startedAt = performance.now();
        for (let failures = 0;; failures++) {
            try {
                const elapsed = performance.now() - startedAt;
                return await this.tools.publisher.publish(token, Math.max(0, delayMs - elapsed), CONFIRM_MS);
            }
            catch (err) {
                if (signal.aborted)
                    throw err;
                await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
            }
        }
    }
}
//# sourceMappingURL=worker.js.map