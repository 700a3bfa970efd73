import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { hrefOf, place } from '../data/router.js';
import type { Screen, ScreenPage, ScreenProps } from '../data/screen.js';
import { type Instance, instances, isResumed, keys, signOut } from '../data/session.js';
import { nextTheme, theme } from '../data/theme.js';
import { Overview } from '../overview/overview.js';
import { Button } from '../parts/controls.js';
import { Empty, Notice } from '../parts/layout.js';
import { screens } from './screens.js';
import { AddKey, SignIn } from './sign-in.js';

export function Shell() {
  if (!isResumed.value) return <p class="door muted">Loading…</p>;
  if (keys.value.length === 0) return <SignIn />;
  return (
    <div class="shell">
      <button type="button" class="skip button" onClick={toMain}>
        Skip to the content
      </button>
      <Side />
      <Main />
    </div>
  );
}

function toMain(): void {
  document.getElementById('main')?.focus();
}

const THEMES = { system: 'Colours of the system', light: 'Light colours', dark: 'Dark colours' } as const;

function Side() {
  const [isOpen, setOpen] = useState(false);
  const [isAdding, setAdding] = useState(false);
  const { path } = place.value;
  useEffect(() => setOpen(false), [path.join('/')]);
  return (
    <header class={isOpen ? 'side open' : 'side'}>
      <div class="side-top">
        <div class="brand">
          <Mark />
          Portico
        </div>
        <span class="menu-button">
          <Button
            isSmall
            onClick={() => setOpen(!isOpen)}
            label={isOpen ? 'Close the menu' : 'Open the menu'}
          >
            Menu
          </Button>
        </span>
      </div>
      <nav class="nav" aria-label="Screens">
        <div class="nav-group">
          <Link path={[]}>Overview</Link>
        </div>
        {screens.flatMap((screen) =>
          instances.value
            .filter(({ unlocked }) => unlocked.service === screen.service)
            .map((instance) => <Group key={instance.unlocked.path} screen={screen} instance={instance} />),
        )}
      </nav>
      <div class="side-foot">
        <Button kind="quiet" isSmall onClick={() => setAdding(true)}>
          Add credentials
        </Button>
        <Button kind="quiet" isSmall onClick={nextTheme}>
          {THEMES[theme.value]}
        </Button>
        <Button kind="quiet" isSmall onClick={signOut}>
          Sign out
        </Button>
      </div>
      {isAdding ? <AddKey onClose={() => setAdding(false)} /> : null}
    </header>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#1d4ed8" />
      <path
        d="M7 25V14a9 9 0 0 1 18 0v11M12 25V14.5a4 4 0 0 1 8 0V25"
        fill="none"
        stroke="#fff"
        stroke-width="2.6"
        stroke-linecap="round"
      />
    </svg>
  );
}

function Group({ screen, instance }: { readonly screen: Screen; readonly instance: Instance }) {
  const { name, service } = instance.unlocked;
  return (
    <div class="nav-group">
      <span class="nav-title">
        {screen.title}
        {name === 'default' ? '' : ` · ${name}`}
        {instance.mayChange ? '' : ' (read only)'}
      </span>
      {screen.pages.map((page) => (
        <Link key={page.name} path={[service, name, page.name]}>
          {page.title}
        </Link>
      ))}
    </div>
  );
}

function Link({ path, children }: { readonly path: readonly string[]; readonly children: string }) {
  const here = place.value.path;
  const isHere = path.length === 0 ? here.length === 0 : path.every((word, i) => here[i] === word);
  return (
    <a href={hrefOf(path)} aria-current={isHere ? 'page' : undefined}>
      {children}
    </a>
  );
}

function Main() {
  const { path } = place.value;
  const [service = '', name = '', pageName = '', ...rest] = path;
  const screen = screens.find((each) => each.service === service);
  const page = screen?.pages.find((each) => each.name === pageName) ?? screen?.pages[0];
  const instance = instances.value.find(
    ({ unlocked }) => unlocked.service === service && unlocked.name === name,
  );
  const title = page === undefined ? 'Overview' : `${page.title} · ${screen?.title}`;
  useEffect(() => {
    document.title = `${title} · Portico`;
  }, [title]);
  return (
    <main class="main" id="main" tabIndex={-1}>
      {path.length === 0 ? (
        <Overview />
      ) : page === undefined || instance === undefined ? (
        <Empty>There is nothing at this place, or your credentials do not open it.</Empty>
      ) : (
        <Loaded key={`${service}/${name}/${page.name}`} page={page} instance={instance} rest={rest} />
      )}
    </main>
  );
}

function Loaded({ page, ...props }: ScreenProps & { readonly page: ScreenPage }) {
  const [found, setFound] = useState<ComponentType<ScreenProps>>();
  const [error, setError] = useState<string>();
  const isGone = useRef(false);
  useEffect(() => {
    page.load().then(
      (component) => {
        if (!isGone.current) setFound(() => component);
      },
      () => setError('This part of the console could not be loaded. Load the page anew.'),
    );
    return () => {
      isGone.current = true;
    };
  }, [page]);
  if (error !== undefined) return <Notice tone="bad">{error}</Notice>;
  const Found = found;
  return Found === undefined ? <Empty>Loading…</Empty> : <Found {...props} />;
}
