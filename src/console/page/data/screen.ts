import type { ComponentType } from 'preact';
import type { Instance } from './session.js';

export interface ScreenProps {
  readonly instance: Instance;
  /** What stands behind the page's own name in the address. */
  readonly rest: readonly string[];
}

/** One page of a service's screen; its code is fetched when it is first opened. */
export interface ScreenPage {
  /** In the address. */
  readonly name: string;
  readonly title: string;
  readonly load: () => Promise<ComponentType<ScreenProps>>;
}

/** What a service shows: the folder of its screen has one as `screen` in its `index.ts`. */
export interface Screen {
  readonly service: string;
  readonly title: string;
  /** What is behind it, such as Redis. */
  readonly backend: string;
  /** Where it stands among the others. */
  readonly order: number;
  readonly pages: readonly ScreenPage[];
}
