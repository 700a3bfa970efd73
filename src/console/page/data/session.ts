import { computed, signal } from '@preact/signals';
import { type Answer, ApiError, ask, type Call } from './api.js';
import { forgetPlace } from './router.js';

/** An instance of a service, and what this person may do there. */
export interface Unlocked {
  readonly service: string;
  readonly name: string;
  readonly path: string;
  readonly access: 'full' | 'read';
  readonly principal: string;
}

/** Credentials, and what they open. */
export interface Key {
  readonly authorization: string;
  readonly unlocked: readonly Unlocked[];
}

/** An instance with the credentials for it. */
export class Instance {
  constructor(
    readonly unlocked: Unlocked,
    readonly authorization: string,
  ) {}

  get mayChange(): boolean {
    return this.unlocked.access === 'full';
  }

  /** @param path below the instance */
  call<Body>(path: string, call?: Call): Promise<Answer<Body>> {
    const below = this.unlocked.path === '/' ? '' : this.unlocked.path;
    return ask<Body>(below + path, this.authorization, call);
  }

  async get<Body>(path: string, call?: Call): Promise<Body> {
    return (await this.call<Body>(path, call)).body;
  }
}

const STORE = 'portico.console.credentials';

export const keys = signal<readonly Key[]>([]);
/** The first look at what was kept is over. */
export const isResumed = signal(false);
/** Why a link did not sign in. */
export const linkError = signal<string | undefined>(undefined);

/** Every instance once, with the credentials that may do most there. */
export const instances = computed<readonly Instance[]>(() => {
  const best = new Map<string, Instance>();
  for (const { authorization, unlocked } of keys.value) {
    for (const one of unlocked) {
      const id = `${one.service}/${one.name}`;
      const known = best.get(id);
      if (known === undefined || (!known.mayChange && one.access === 'full'))
        best.set(id, new Instance(one, authorization));
    }
  }
  return [...best.values()];
});

export function instanceOf(service: string, name: string): Instance | undefined {
  return instances.value.find(({ unlocked }) => unlocked.service === service && unlocked.name === name);
}

/** @throws ApiError 401 when they open nothing */
export async function signIn(authorization: string): Promise<void> {
  const { body } = await ask<{ unlocked: Unlocked[] }>('/console/api/access', authorization);
  if (body.unlocked.length === 0) throw new ApiError(401, 'These credentials open nothing here.');
  const others = keys.value.filter((key) => key.authorization !== authorization);
  keys.value = [...others, { authorization, unlocked: body.unlocked }];
  keep();
}

export function signOut(): void {
  keys.value = [];
  sessionStorage.removeItem(STORE);
}

/** Signs in with a link's code, or with what this tab has kept. */
export async function resume(): Promise<void> {
  const code = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  // before anything else: neither the history nor a look over the shoulder is to have it
  if (code !== undefined) forgetPlace();
  try {
    await signInAll(kept());
    if (code !== undefined) await signInByCode(code);
  } finally {
    isResumed.value = true;
  }
}

async function signInByCode(code: string): Promise<void> {
  try {
    const { body } = await ask<{ credentials: string[] }>('/console/api/sign-in', undefined, {
      method: 'POST',
      body: { code },
    });
    await signInAll(body.credentials);
  } catch (error) {
    linkError.value = (error as Error).message;
  }
}

/** Those that open nothing any more are forgotten. */
async function signInAll(credentials: readonly string[]): Promise<void> {
  await Promise.allSettled(credentials.map(signIn));
}

function kept(): string[] {
  try {
    const list: unknown = JSON.parse(sessionStorage.getItem(STORE) ?? '[]');
    return Array.isArray(list) ? list.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}

function keep(): void {
  sessionStorage.setItem(STORE, JSON.stringify(keys.value.map(({ authorization }) => authorization)));
}
