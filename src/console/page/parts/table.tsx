import type { ComponentChildren } from 'preact';
import { Button } from './controls.js';
import { Empty, Failure } from './layout.js';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
  /** Long words are cut; the whole stands in the details. */
  readonly isCut?: boolean;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly openKey?: string | undefined;
  readonly empty?: ComponentChildren;
  readonly isBusy?: boolean;
}

export function Table<Row>({ label, columns, rows, keyOf, openKey, empty, isBusy }: TableProps<Row>) {
  if (rows.length === 0) return <Empty>{isBusy ? 'Loading…' : (empty ?? 'There is nothing here.')}</Empty>;
  const classOf = ({ isNumber, isCut }: Column<Row>) =>
    isNumber ? 'number once' : isCut ? 'cut' : undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table class="table">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={column.isNumber ? 'number' : undefined}>
                {column.title.startsWith('·') ? (
                  <span class="hidden-label">{column.title.slice(1)}</span>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={openKey !== undefined && keyOf(row) === openKey ? 'open' : undefined}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface MoreProps {
  readonly shown: number;
  readonly hasMore: boolean;
  readonly isBusy: boolean;
  readonly error: Error | undefined;
  readonly onMore: () => void;
  readonly what: string;
}

/** The end of a window of a list: how much is shown, and the next one. */
export function More({ shown, hasMore, isBusy, error, onMore, what }: MoreProps) {
  return (
    <div class="actions">
      <span class="muted" role="status">
        {shown} {what}
        {hasMore ? ', there are more' : ''}
      </span>
      {hasMore ? (
        <Button isSmall onClick={onMore} isDisabled={isBusy}>
          {isBusy ? 'Loading…' : 'Show more'}
        </Button>
      ) : null}
      <Failure error={error} />
    </div>
  );
}
