import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Paths of PEM files. All are signed by `ca`; the server's is for 127.0.0.1, ::1 and localhost. */
export interface Certificates {
  readonly ca: string;
  readonly serverCert: string;
  readonly serverKey: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

/** A key without passphrase and a certificate of it, valid for two days; self-signed where no CA is given. */
async function certificate(cert: string, key: string, name: string, options: readonly string[]) {
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const files = ['-keyout', key, '-out', cert];
  await run('openssl', ['req', '-x509', ...made, ...files, '-subj', `/CN=${name}`, ...options], {
    timeout: 120_000,
  });
}

/** A certificate authority of its own in `folder`, with one certificate for servers and one for clients. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const at = (name: string) => join(folder, name);
  const [ca, caKey] = [at('ca.crt'), at('ca.key')];
  await certificate(ca, caKey, 'Portico test CA', []);
  const signed = ['-CA', ca, '-CAkey', caKey, '-addext', 'basicConstraints=critical,CA:FALSE'];
  const hosts = ['-addext', 'subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost'];
  const files = {
    ca,
    serverCert: at('server.crt'),
    serverKey: at('server.key'),
    clientCert: at('client.crt'),
    clientKey: at('client.key'),
  };
  await certificate(files.serverCert, files.serverKey, 'localhost', [...signed, ...hosts]);
  await certificate(files.clientCert, files.clientKey, 'portico-client', signed);
  return files;
}
