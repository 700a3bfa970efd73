import { useState } from 'preact/hooks';
import { base64Of } from '../data/base64.js';
import { linkError, signIn } from '../data/session.js';
import { Button, SelectField, TextField } from '../parts/controls.js';
import { Dialog } from '../parts/dialog.js';
import { Failure, Notice, Panel } from '../parts/layout.js';

interface FormProps {
  readonly onDone?: () => void;
}

function CredentialsForm({ onDone }: FormProps) {
  const [kind, setKind] = useState('token');
  const [token, setToken] = useState('');
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<Error>();
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    const basic = `Basic ${base64Of(`${username}:${password}`)}`;
    try {
      await signIn(kind === 'token' ? `Bearer ${token.trim()}` : basic);
      onDone?.();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <SelectField
        label="Kind"
        value={kind}
        onChange={setKind}
        options={[
          ['token', 'Token (kv, vector, queue, metrics)'],
          ['user', 'User name and password (broker)'],
        ]}
      />
      {kind === 'token' ? (
        <TextField label="Token" type="password" value={token} onChange={setToken} isRequired isMono />
      ) : (
        <>
          <TextField label="User name" value={username} onChange={setUsername} isRequired />
          <TextField label="Password" type="password" value={password} onChange={setPassword} isRequired />
        </>
      )}
      <Failure error={error} />
      <div class="actions">
        <Button kind="primary" type="submit">
          Sign in
        </Button>
      </div>
    </form>
  );
}

export function SignIn() {
  return (
    <main class="door">
      <div class="stack">
        <h1>Portico</h1>
        {linkError.value === undefined ? null : <Notice tone="bad">{linkError.value}</Notice>}
        <Panel title="Sign in">
          <p class="muted">
            With the tokens of the services: each opens its own part, and more can be added later. They stay
            in this tab and go to this gateway only.
          </p>
          <CredentialsForm />
        </Panel>
      </div>
    </main>
  );
}

export function AddKey({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Add credentials" onClose={onClose} actions={<Button onClick={onClose}>Cancel</Button>}>
      <CredentialsForm onDone={onClose} />
    </Dialog>
  );
}
