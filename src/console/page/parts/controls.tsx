import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick?: () => unknown;
  readonly kind?: 'primary' | 'danger' | 'quiet' | undefined;
  readonly isSmall?: boolean;
  readonly isDisabled?: boolean | undefined;
  readonly type?: 'button' | 'submit';
  readonly label?: string;
  /** Why it can not be used, or more about what it does. */
  readonly title?: string | undefined;
}

/** While what it began is under way it takes no second click. */
export function Button({
  children,
  onClick,
  kind,
  isSmall,
  isDisabled,
  type = 'button',
  label,
  title,
}: ButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      await onClick?.();
    } finally {
      setBusy(false);
    }
  };
  const names = ['button', kind, isSmall ? 'small' : undefined].filter(Boolean).join(' ');
  return (
    <button
      type={type}
      class={names}
      disabled={isDisabled === true || isBusy}
      aria-label={label}
      title={title}
      onClick={onClick === undefined ? undefined : () => void act()}
    >
      {children}
    </button>
  );
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: (id: string) => ComponentChildren;
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      {children(id)}
      {hint === undefined ? null : <span class="hint">{hint}</span>}
    </div>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly placeholder?: string;
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'datetime-local';
  readonly isMono?: boolean;
  readonly isRequired?: boolean;
  /** Offered while one writes. */
  readonly options?: readonly string[];
}

export function TextField(props: TextProps) {
  const { label, value, onChange, hint, placeholder, type = 'text', isMono, isRequired, options } = props;
  const list = useId();
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <>
          <input
            id={id}
            class={isMono ? 'input mono' : 'input'}
            type={type as 'text'}
            value={value}
            placeholder={placeholder}
            required={isRequired}
            autocomplete="off"
            spellcheck={false}
            list={options === undefined ? undefined : list}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
          {options === undefined ? null : (
            <datalist id={list}>
              {options.map((option) => (
                <option key={option} value={option} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

interface AreaProps extends Omit<TextProps, 'type' | 'options' | 'isMono'> {
  readonly rows?: number;
}

export function AreaField({ label, value, onChange, hint, placeholder, rows = 5, isRequired }: AreaProps) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <textarea
          id={id}
          class="area"
          rows={rows}
          value={value}
          placeholder={placeholder}
          required={isRequired}
          spellcheck={false}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly hint?: ComponentChildren;
}

export function SelectField({ label, value, onChange, options, hint }: SelectProps) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <select
          id={id}
          class="select"
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}

export function Check({ label, isOn, onChange }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}
