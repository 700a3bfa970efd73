import { TextField } from '../../parts/controls.js';
import { Notice } from '../../parts/layout.js';

interface Props {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function FilterField({ value, onChange }: Props) {
  return (
    <TextField
      label="Filter"
      value={value}
      onChange={onChange}
      placeholder="genre = 'drama' AND year > 1990"
      isMono
    />
  );
}

/** Where the service says that a filter is wrong: its column, counted from 1. */
const COLUMN = /column (\d+)/;

/** A refusal with the place in the filter marked, where it names one. */
export function FilterProblem({
  filter,
  error,
}: {
  readonly filter: string;
  readonly error: Error | undefined;
}) {
  if (error === undefined) return null;
  const column = Number(COLUMN.exec(error.message)?.[1] ?? 0);
  return (
    <Notice tone="bad">
      {error.message}
      {column > 0 ? (
        <pre>
          {filter}
          {'\n'}
          {`${' '.repeat(column - 1)}^`}
        </pre>
      ) : null}
    </Notice>
  );
}
