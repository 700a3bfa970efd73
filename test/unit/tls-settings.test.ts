import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, loadConfig } from '../../src/config/load.js';
import { type Certificates, makeCertificates } from '../support/certificates.js';
import { TOKEN_VARIABLES } from '../support/tokens.js';

type Files = { readonly ca?: string; readonly cert?: string; readonly key?: string };

let folder: string;
let certificates: Certificates;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portico-tls-'));
  certificates = await makeCertificates(folder);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NAMES = { ca: 'sslrootcert', cert: 'sslcert', key: 'sslkey' } as const;

function postgres(files: Files): string {
  const query = new URLSearchParams();
  for (const [name, path] of Object.entries(files)) query.set(NAMES[name as keyof Files], path);
  return `postgres://user:word@127.0.0.1/db?${query}`;
}

/** A configuration in which every service has the files. */
const documentWith = (files: Files) => ({
  kv: { databases: [{ url: 'rediss://a', tls: files }] },
  vector: { database: { url: postgres(files) } },
  broker: { clusters: [{ brokers: ['a:9092'], tls: { enabled: true, ...files } }] },
  queue: { rabbitmqUrl: 'amqps://user:word@127.0.0.1', rabbitmqTls: files, databaseUrl: postgres(files) },
});

/** The wrong keys with the reasons, of a start with these files everywhere. */
const problemsWith = (files: Files) => problemsOf(documentWith(files));

function problemsOf(document: Record<string, unknown>): readonly string[] {
  try {
    loadConfig({ document, environment: TOKEN_VARIABLES });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** The lines for one file's mistake: every service's, by its key. */
const everywhere = (name: keyof Files, problem: string) => [
  `configuration: kv.databases[0].tls.${name}: ${problem}`,
  `configuration: vector.database.url: ${NAMES[name]}: ${problem}`,
  `configuration: broker.clusters[0].tls.${name}: ${problem}`,
  `configuration: queue.rabbitmqTls.${name}: ${problem}`,
  `configuration: queue.databaseUrl: ${NAMES[name]}: ${problem}`,
];

it('takes the files that fit, in every service', () => {
  const { ca, clientCert: cert, clientKey: key } = certificates;
  expect(problemsWith({ ca })).toEqual([]);
  expect(problemsWith({ ca, cert, key })).toEqual([]);
  expect(problemsWith({})).toEqual([]);
});

it.each(['ca', 'cert', 'key'] as const)(
  'names each key whose file is missing or something else: %s',
  (name) => {
    const missing = { [name]: join(folder, 'nowhere.pem') };
    expect(problemsWith(missing)).toEqual(everywhere(name, 'the file cannot be read (ENOENT)'));
    expect(problemsWith({ [name]: folder })).toEqual(everywhere(name, 'the file cannot be read (EISDIR)'));
    const content = name === 'key' ? 'a key without a passphrase' : 'certificates';
    const other = name === 'key' ? certificates.clientCert : certificates.clientKey;
    expect(problemsWith({ [name]: other })).toEqual(everywhere(name, `expected a PEM file with ${content}`));
  },
);

it('refuses files for RabbitMQ that nobody would look at, because its address has no TLS', () => {
  const { ca } = certificates;
  const { queue } = documentWith({ ca });
  const document = {
    ...documentWith({ ca }),
    queue: { ...queue, rabbitmqUrl: 'amqp://user:word@127.0.0.1' },
  };
  expect(problemsOf(document)).toEqual([
    expect.stringMatching(/queue\.rabbitmqTls\.ca: the address has no TLS: expected amqps:/),
  ]);
});

it('names the key that does not belong to its certificate, or that one of the two is missing', () => {
  const { clientCert: cert, clientKey: key, serverKey } = certificates;
  expect(problemsWith({ cert, key: serverKey })).toEqual(everywhere('key', 'not the key of the certificate'));
  expect(problemsWith({ cert })).toEqual(everywhere('key', 'missing, although there is a certificate'));
  expect(problemsWith({ key })).toEqual(everywhere('cert', 'missing, although there is a key'));
});

it('names all mistakes at once, and no secret of an address', () => {
  const nowhere = join(folder, 'nowhere.pem');
  const problems = problemsWith({ ca: nowhere, cert: nowhere, key: certificates.ca });
  expect(problems).toHaveLength(15);
  expect(problems.join('\n')).not.toContain('word');
  for (const name of ['ca', 'cert'] as const)
    expect(problems).toEqual(expect.arrayContaining(everywhere(name, 'the file cannot be read (ENOENT)')));
});
