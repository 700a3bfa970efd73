import { useState } from 'preact/hooks';
import { gatewayUrl } from '../../data/base.js';
import { quoted } from '../../data/format.js';
import { hrefOf } from '../../data/router.js';
import type { ScreenProps } from '../../data/screen.js';
import { Snippets } from '../../parts/code.js';
import { AreaField, Button, SelectField, TextField } from '../../parts/controls.js';
import { Failure, Notice, PageHead, Panel } from '../../parts/layout.js';

interface Draft {
  readonly destination: string;
  readonly queue: string;
  readonly method: string;
  readonly type: string;
  readonly body: string;
  readonly delay: string;
  readonly retries: string;
  readonly callback: string;
  readonly failureCallback: string;
  readonly label: string;
}

const EMPTY: Draft = {
  destination: '',
  queue: '',
  method: 'POST',
  type: 'application/json',
  body: '{"hello": "world"}',
  delay: '',
  retries: '',
  callback: '',
  failureCallback: '',
  label: '',
};

function headersOf(draft: Draft): Record<string, string> {
  const all = {
    'Content-Type': draft.type,
    'Upstash-Method': draft.method === 'POST' ? '' : draft.method,
    'Upstash-Delay': draft.delay,
    'Upstash-Retries': draft.retries,
    'Upstash-Callback': draft.callback,
    'Upstash-Failure-Callback': draft.failureCallback,
    'Upstash-Label': draft.label,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
}

const pathOf = ({ queue, destination }: Draft) =>
  queue === '' ? `/v2/publish/${destination}` : `/v2/enqueue/${encodeURIComponent(queue)}/${destination}`;

function curlOf(draft: Draft, base: string): string {
  const headers = Object.entries(headersOf(draft)).map(
    ([name, value]) => `  -H ${quoted(`${name}: ${value}`)} \\`,
  );
  return [
    `curl -X POST ${quoted(base + pathOf(draft))} \\`,
    '  -H "Authorization: Bearer $QSTASH_TOKEN" \\',
    ...headers,
    `  -d ${quoted(draft.body)}`,
  ].join('\n');
}

/** @param base the service's URL, which the client takes without a path's end */
function sdkOf(draft: Draft, base: string): string {
  const seconds = /^(\d+)s?$/.exec(draft.delay)?.[1];
  const options: [string, unknown][] = [
    [/^https?:/.test(draft.destination) ? 'url' : 'urlGroup', draft.destination],
    ['method', draft.method === 'POST' ? undefined : draft.method],
    ['body', draft.body],
    ['headers', { 'Content-Type': draft.type }],
    ['delay', seconds === undefined ? draft.delay || undefined : Number(seconds)],
    ['retries', draft.retries === '' ? undefined : Number(draft.retries)],
    ['callback', draft.callback || undefined],
    ['failureCallback', draft.failureCallback || undefined],
    ['label', draft.label || undefined],
  ];
  const lines = options
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
  const call =
    draft.queue === ''
      ? 'client.publish'
      : `client.queue({ queueName: ${JSON.stringify(draft.queue)} }).enqueue`;
  return [
    `import { Client } from '@upstash/qstash';`,
    `const client = new Client({ baseUrl: ${JSON.stringify(base)}, token: process.env.QSTASH_TOKEN });`,
    `await ${call}({`,
    ...lines,
    '});',
  ].join('\n');
}

/** Publishes a message, and shows how a program does. */
export function PublishPage({ instance }: ScreenProps) {
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [error, setError] = useState<Error>();
  const [sent, setSent] = useState<readonly string[]>();
  const { service, name, path } = instance.unlocked;
  const base = gatewayUrl(path).replace(/\/$/, '');
  const set = (key: keyof Draft) => (value: string) => setDraft({ ...draft, [key]: value });
  const publish = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    setSent(undefined);
    try {
      const call = { method: 'POST', headers: headersOf(draft), body: draft.body };
      const { body } = await instance.call<{ messageId: string } | { messageId: string }[]>(
        pathOf(draft),
        call,
      );
      setSent([body].flat().map(({ messageId }) => messageId));
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <>
      <PageHead title="Publish" />
      {instance.mayChange ? null : (
        <Notice tone="info">These credentials only read: nothing can be published.</Notice>
      )}
      <div class="columns">
        <Panel title="Message">
          <form class="form" onSubmit={(event) => void publish(event)}>
            <TextField
              label="URL or URL group"
              value={draft.destination}
              onChange={set('destination')}
              placeholder="https://example.com/hook"
              isMono
              isRequired
            />
            <div class="form-row">
              <SelectField
                label="Method"
                value={draft.method}
                onChange={set('method')}
                options={['POST', 'GET', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, method])}
              />
              <TextField label="Content type" value={draft.type} onChange={set('type')} isMono />
              <TextField label="Ordered queue" value={draft.queue} onChange={set('queue')} />
            </div>
            <AreaField label="Body" value={draft.body} onChange={set('body')} />
            <div class="form-row">
              <TextField
                label="Delay"
                value={draft.delay}
                onChange={set('delay')}
                placeholder="10s, 5m, 1h"
              />
              <TextField label="Retries" type="number" value={draft.retries} onChange={set('retries')} />
              <TextField label="Label" value={draft.label} onChange={set('label')} />
            </div>
            <div class="form-row">
              <TextField label="Callback" value={draft.callback} onChange={set('callback')} isMono />
              <TextField
                label="Failure callback"
                value={draft.failureCallback}
                onChange={set('failureCallback')}
                isMono
              />
            </div>
            <Failure error={error} />
            {sent === undefined ? null : (
              <Notice tone="good">
                Accepted:{' '}
                {sent.map((id) => (
                  <a key={id} href={hrefOf([service, name, 'log'], { open: id })}>
                    {id}
                  </a>
                ))}
              </Notice>
            )}
            <div class="actions">
              <Button kind="primary" type="submit" isDisabled={!instance.mayChange}>
                Publish
              </Button>
            </div>
          </form>
        </Panel>
        <Panel title="The same from a program">
          <Snippets curl={curlOf(draft, base)} sdk={sdkOf(draft, base)} />
        </Panel>
      </div>
    </>
  );
}
