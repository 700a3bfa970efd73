import { useState } from 'preact/hooks';
import { pretty } from '../../data/format.js';
import type { Instance } from '../../data/session.js';
import { usePages } from '../../data/use-pages.js';
import { useQuery } from '../../data/use-query.js';
import { AreaField, Button, TextField } from '../../parts/controls.js';
import { Empty, Failure, Notice } from '../../parts/layout.js';
import { type Column, More, Table } from '../../parts/table.js';
import { useAction } from '../../parts/use-action.js';
import { run, type Word } from './run-command.js';
import { type Element, type ValueType, valueTypes } from './value-types.js';

interface ViewProps {
  readonly name: string;
  readonly type: string;
  readonly instance: Instance;
  readonly onChanged: () => void;
}

/** A value by its type: to look at, and with the standard token to change. */
export function ValueView(props: ViewProps) {
  const found = valueTypes[props.type];
  if (found !== undefined) return <Elements {...props} valueType={found} />;
  if (props.type === 'string' || props.type === 'ReJSON-RL') return <Text {...props} />;
  return <Empty>Values of this type can be read in the command line.</Empty>;
}

/** Characters of a text that are fetched; what is longer is shown in part and not edited here. */
const LONGEST = 100_000;

function Text({ name, type, instance, onChanged }: ViewProps) {
  const isJson = type === 'ReJSON-RL';
  const text = useQuery(`text ${name}`, async (signal) => {
    if (isJson) return pretty(String(await run<string>(instance, ['JSON.GET', name, '$'], signal)));
    return String(await run<string>(instance, ['GETRANGE', name, 0, LONGEST], signal));
  });
  const [draft, setDraft] = useState<string>();
  const [outcome, act] = useAction();
  const save = () =>
    act(async () => {
      const value = draft ?? '';
      // JSON.GET with a path answers a list of what is there
      const words = isJson
        ? ['JSON.SET', name, '$', JSON.stringify((JSON.parse(value) as unknown[])[0])]
        : ['SET', name, value, 'KEEPTTL'];
      await run(instance, words);
      setDraft(undefined);
      text.refresh();
      onChanged();
      return 'Saved.';
    });
  const shown = text.data ?? '';
  const isCut = shown.length > LONGEST;
  return (
    <div class="stack">
      <Failure error={text.error} />
      {isCut ? <Notice tone="warn">Longer than 100,000 characters: this is its beginning.</Notice> : null}
      <AreaField
        label="Value"
        rows={12}
        value={draft ?? (isJson ? shown : pretty(shown))}
        onChange={setDraft}
      />
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      {instance.mayChange ? (
        <div class="actions">
          <Button kind="primary" isSmall onClick={save} isDisabled={draft === undefined || isCut}>
            Save
          </Button>
          <Button isSmall onClick={() => setDraft(undefined)} isDisabled={draft === undefined}>
            Discard
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function Elements({
  name,
  type,
  instance,
  onChanged,
  valueType,
}: ViewProps & { readonly valueType: ValueType }) {
  const pages = usePages<Element>(`${name} ${type}`, (cursor, signal) =>
    valueType.read(instance, name, cursor, signal),
  );
  const [edited, setEdited] = useState<Element>();
  const [outcome, act] = useAction();
  const change = (words: readonly Word[], done: string) =>
    act(async () => {
      await run(instance, words);
      setEdited(undefined);
      pages.refresh();
      onChanged();
      return done;
    });
  const columns: Column<Element>[] = [
    { title: valueType.idTitle, cell: ({ id }) => <code>{id}</code>, isCut: true },
    ...(valueType.valueTitle === ''
      ? []
      : [{ title: valueType.valueTitle, cell: ({ value }: Element) => <code>{value}</code>, isCut: true }]),
  ];
  if (instance.mayChange)
    columns.push({
      title: '·Actions',
      cell: (element) => (
        <div class="actions">
          {valueType.isEditable ? (
            <Button isSmall label={`Edit ${element.id}`} onClick={() => setEdited(element)}>
              Edit
            </Button>
          ) : null}
          {valueType.remove === undefined ? null : (
            <Button
              isSmall
              label={`Remove ${element.id}`}
              onClick={() => change(valueType.remove?.(name, element) ?? [], 'It is removed.')}
            >
              Remove
            </Button>
          )}
        </div>
      ),
    });
  return (
    <div class="stack">
      {outcome === undefined ? null : <Notice tone={outcome.tone}>{outcome.text}</Notice>}
      <Table
        label="Elements"
        columns={columns}
        rows={pages.items}
        keyOf={({ id }) => id}
        isBusy={pages.isBusy}
      />
      <More
        shown={pages.items.length}
        hasMore={pages.hasMore}
        isBusy={pages.isBusy}
        error={pages.error}
        onMore={pages.more}
        what="elements"
      />
      {instance.mayChange ? (
        <ElementForm
          key={edited?.id ?? ''}
          edited={edited}
          valueType={valueType}
          onSave={(id, value) => change(valueType.put(name, id, value), 'Saved.')}
        />
      ) : null}
    </div>
  );
}

interface FormProps {
  readonly edited: Element | undefined;
  readonly valueType: ValueType;
  readonly onSave: (id: string, value: string) => Promise<void>;
}

function ElementForm({ edited, valueType, onSave }: FormProps) {
  const [id, setId] = useState(edited?.id ?? '');
  const [value, setValue] = useState(edited?.value ?? '');
  const { hasId, idTitle, valueTitle } = valueType;
  const submit = (event: Event) => {
    event.preventDefault();
    void onSave(edited?.id ?? id, value);
  };
  return (
    <form class="form" onSubmit={submit}>
      <h3>{edited === undefined ? 'Add' : `Edit ${edited.id}`}</h3>
      {hasId && edited === undefined ? (
        <TextField label={idTitle} value={id} onChange={setId} isMono isRequired />
      ) : null}
      {valueTitle === '' ? null : valueTitle === 'Score' ? (
        <TextField label={valueTitle} value={value} onChange={setValue} isMono isRequired />
      ) : (
        <AreaField
          label={valueTitle}
          value={value}
          onChange={setValue}
          rows={3}
          {...(valueTitle === 'Fields' ? { hint: 'A line each: name: value' } : {})}
        />
      )}
      <div class="actions">
        <Button type="submit" isSmall kind="primary">
          {edited === undefined ? 'Add' : 'Save'}
        </Button>
      </div>
    </form>
  );
}
