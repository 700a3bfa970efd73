import { type ComponentChildren, Fragment } from 'preact';
import type { ApiError } from '../data/api.js';

interface PanelProps {
  readonly title?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly foot?: ComponentChildren;
  /** A table goes to the edges. */
  readonly isFlush?: boolean;
  readonly children: ComponentChildren;
}

export function Panel({ title, actions, foot, isFlush, children }: PanelProps) {
  return (
    <section class="panel">
      {title === undefined && actions === undefined ? null : (
        <div class="panel-head">
          <h2>{title}</h2>
          {actions === undefined ? null : <div class="actions">{actions}</div>}
        </div>
      )}
      {isFlush ? children : <div class="panel-body">{children}</div>}
      {foot === undefined ? null : <div class="panel-foot">{foot}</div>}
    </section>
  );
}

interface PageHeadProps {
  readonly title: string;
  readonly children?: ComponentChildren;
}

export function PageHead({ title, children }: PageHeadProps) {
  return (
    <div class="page-head">
      <h1>{title}</h1>
      <div class="actions">{children}</div>
    </div>
  );
}

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'plain';

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Notice({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      {children}
    </div>
  );
}

/** What went wrong, in the service's own words. */
export function Failure({ error }: { readonly error: Error | undefined }) {
  if (error === undefined) return null;
  const { status } = error as ApiError;
  return (
    <Notice tone="bad">
      {status ? `${status}: ` : ''}
      {error.message}
    </Notice>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** Names and what they are; what is absent is left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  const present = facts.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return (
    <dl class="facts">
      {present.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
