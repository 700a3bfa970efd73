import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Scalar draws the page /docs. Its package is one file that holds everything, beside 299 packages (243 MB) that it was made
// of: npm would install all of them for each who builds. So the one archive is fetched, by npm, and checked.

const VERSION = '1.46.4';
const INTEGRITY =
  'sha512-EpCcOG15Ry8DKNs/f5AdRA97s1B5kGPekzANpnK0j1IpyU4Sb/mfdyfB00WC+vUo7hfc4BFRSkkiPa5SSM7fng==';
const FETCH_MS = 60_000;

/** Of the file itself, which is kept from one build to the next. */
const FILE_SHA256 = '81b8d2bdab4a42ab81465386441b9a0f928b68631364360f00e8cce620cc1efb';

/** As its repository has it; the package names MIT and leaves the text out. */
const LICENSE = `MIT License

Copyright (c) 2023-present Scalar

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR
IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`;

const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

/**
 * Puts Scalar's file where the gateway looks for it.
 * @param {string} folder
 * @throws {Error} when it cannot be fetched, or is another
 */
export function bringReferencePage(folder) {
  const file = join(folder, 'scalar.js');
  if (existsSync(file) && sha256(file) === FILE_SHA256) return;
  const place = mkdtempSync(join(tmpdir(), 'portico-scalar-'));
  try {
    const args = ['pack', `@scalar/api-reference@${VERSION}`, '--silent', '--prefer-offline'];
    execFileSync('npm', [...args, '--pack-destination', place], { timeout: FETCH_MS, stdio: 'pipe' });
    const archive = join(place, `scalar-api-reference-${VERSION}.tgz`);
    const digest = createHash('sha512').update(readFileSync(archive)).digest('base64');
    if (`sha512-${digest}` !== INTEGRITY) throw new Error(`${archive} is not what it was: sha512-${digest}`);
    const wanted = 'package/dist/browser/standalone.js';
    execFileSync('tar', ['-xzf', archive, '-C', place, wanted]);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'scalar.LICENSE'), LICENSE);
    copyFileSync(join(place, wanted), file);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
