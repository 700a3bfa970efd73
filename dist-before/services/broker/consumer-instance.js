import { HttpError } from '../../http/errors.js';
import { kafkaType, translateError } from './errors.js';
import { Turns } from './turns.js';
import { pause, untilAborted } from './waits.js';
/** A reply still being written may hold up a close for so long, in ms: it is committed if it arrives meanwhile. */
const LAST_TURN_MS = 2_000;
/** Pause before a member is made again because the group's coordinator was not ready, in ms. */
const COORDINATOR_PAUSE_MS = 200;
const COORDINATOR_NOT_READY = new Set([
    'GROUP_COORDINATOR_NOT_AVAILABLE',
    'GROUP_LOAD_IN_PROGRESS',
    'NOT_COORDINATOR_FOR_GROUP',
]);
/** A consumer of a group under the name that a client gave it: pulled from by one request at a time. */
export class ConsumerInstance {
    options;
    topics;
    member;
    turns = new Turns();
    closing = new AbortController();
    constructor(options) {
        this.options = options;
        this.topics = sorted(options.topics);
        this.member = options.createMember(this.topics);
    }
    get group() {
        return this.options.group;
    }
    get name() {
        return this.options.name;
    }
    get assignment() {
        return this.member.assignment;
    }
    /**
     * Records of `topics`, as soon as there are any; none when `deadline` passes, the client goes or the instance is closed.
     * Other topics than before replace those: what was delivered is committed (where commits are automatic) and the group
     * joined anew.
     * @throws HttpError when the consumer cannot join or dies
     */
    async consume(topics, deadline) {
        const until = AbortSignal.any([deadline, this.closing.signal]);
        const endTurn = await this.turns.take(until);
        if (endTurn === undefined)
            return this.nothing(() => { });
        try {
            const replaced = this.renewed(sorted(topics));
            await untilAborted(replaced, until);
            while (!until.aborted) {
                const delivery = this.member.take(this.options.maxRecords, this.options.maxBytes);
                if (delivery !== undefined) {
                    return {
                        messages: delivery.messages,
                        isJoined: true,
                        settle: (arrived) => {
                            if (arrived)
                                delivery.arrived();
                            else
                                delivery.putBack();
                            endTurn();
                        },
                    };
                }
                if (this.member.state === 'dead')
                    await this.retryOrThrow(until);
                else
                    await this.member.change(until);
            }
            // a member that is still being replaced keeps the turn: nobody may take from either
            return this.nothing(() => void replaced.then(endTurn, endTurn));
        }
        catch (error) {
            endTurn();
            throw error;
        }
    }
    /**
     * Commits `positions` as they are, or what was last delivered when there are none.
     * @throws HttpError 409 for partitions of others, 503 while the group is rebalancing
     */
    async commit(positions, deadline) {
        const until = AbortSignal.any([deadline, this.closing.signal]);
        while (this.member.state === 'joining' && !until.aborted)
            await this.member.change(until);
        if (this.member.state !== 'joined')
            throw notInGroup(this.member.failure);
        const foreign = positions.find((position) => !this.member.isAssigned(position));
        if (foreign !== undefined) {
            const { topic, partition } = foreign;
            throw new HttpError('conflict', `Partition ${partition} of ${topic} is not assigned to this instance.`);
        }
        const { commits } = this.member;
        const commit = positions.length > 0 ? commits.commit(positions) : commits.commitDelivered();
        await commit.catch((error) => {
            throw translateError(error);
        });
    }
    /** Wakes whoever waits, commits, leaves the group. */
    async close() {
        this.closing.abort();
        await this.turns.take(AbortSignal.timeout(LAST_TURN_MS));
        await this.member.close();
    }
    nothing(settle) {
        return { messages: [], isJoined: this.member.state === 'joined', settle };
    }
    /** Makes the member one that lives and reads `topics`; the next begins only when the one before has committed. */
    async renewed(topics) {
        const isSame = topics.length === this.topics.length && topics.every((topic, i) => topic === this.topics[i]);
        if (isSame && !this.member.isLost)
            return;
        await this.member.close();
        if (this.closing.signal.aborted)
            return;
        this.topics = topics;
        this.member = this.options.createMember(topics);
    }
    async retryOrThrow(until) {
        const type = kafkaType(this.member.failure);
        if (type === undefined || !COORDINATOR_NOT_READY.has(type))
            throw translateError(this.member.failure);
        await untilAborted(pause(COORDINATOR_PAUSE_MS), until);
        if (!until.aborted)
            await this.renewed(this.topics);
    }
}
function sorted(topics) {
    return [...new Set(topics)].sort();
}
function notInGroup(cause) {
    return new HttpError('backend_unavailable', 'The instance is not in its group at present.', { cause });
}
//# sourceMappingURL=consumer-instance.js.map