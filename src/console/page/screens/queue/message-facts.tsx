import { textOf } from '../../data/base64.js';
import { timestamp } from '../../data/format.js';
import { Code } from '../../parts/code.js';
import { Facts } from '../../parts/layout.js';
import type { Message } from './types.js';

export const headerText = (header: Readonly<Record<string, readonly string[]>>): string =>
  Object.entries(header)
    .flatMap(([name, values]) => values.map((value) => `${name}: ${value}`))
    .join('\n');

/** A body however it is written. */
export function bodyText(text: string | undefined, base64: string | undefined): string | undefined {
  return base64 === undefined ? text : textOf(base64);
}

/** What a message is, beside what happened to it. */
export function MessageFacts({
  message,
  body,
}: {
  readonly message: Message;
  readonly body?: string | undefined;
}) {
  const headers = headerText(message.header);
  return (
    <>
      <Facts
        facts={[
          ['Message', <code key="id">{message.messageId}</code>],
          ['To', `${message.method} ${message.url}`],
          ['URL group', message.topicName],
          ['Queue', message.queueName],
          ['Schedule', message.scheduleId],
          ['Flow control', message.flowControlKey],
          ['Label', message.label],
          ['Created', timestamp(message.createdAt)],
          ['Retries at most', String(message.maxRetries)],
          ['Callback', message.callback],
          ['Failure callback', message.failureCallback],
        ]}
      />
      {headers === '' ? null : <Code title="Headers" text={headers} />}
      {body === undefined ? null : <Code title="Body" text={body} isPretty />}
    </>
  );
}
