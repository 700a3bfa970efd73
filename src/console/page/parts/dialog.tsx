import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from './controls.js';
import { Failure } from './layout.js';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly actions: ComponentChildren;
}

/** The browser's own: it holds the focus, and Escape closes it. */
export function Dialog({ title, onClose, children, actions }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="dialog" ref={dialog} onClose={onClose} aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
      </div>
      <div class="panel-body">{children}</div>
      <div class="panel-foot actions">{actions}</div>
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

/** Asks before what cannot be taken back; what went wrong is shown where it was asked. */
export function Confirm({ title, children, action, isDangerous, onConfirm, onClose }: ConfirmProps) {
  const [error, setError] = useState<Error>();
  const act = async () => {
    setError(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button kind={isDangerous ? 'danger' : 'primary'} onClick={act}>
            {action}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      {children}
      <Failure error={error} />
    </Dialog>
  );
}
