/**
 * How one program is made of packages of Debian's archive.
 * @typedef {object} Recipe
 * @property {string} title as a person calls it
 * @property {string[]} roots packages; the first one names the version
 * @property {RegExp} [without] packages that this program does not need although another one says so
 * @property {string[]} [omit] paths that are not unpacked, as patterns of tar
 * @property {string} [runPath] folders of libraries beside the common one, as patchelf takes them
 * @property {string} [suite] of the archive; absent: the newest
 * @property {boolean} [isLibrary] for another program to load: it has no loader of its own
 */

/** What sets up a system, not a program: users, services, fonts, certificates, and interpreters for their scripts. */
const systemPackages =
  /^(adduser|ca-certificates.*|cdebconf|debconf.*|default-.*|dpkg|fontconfig.*|fonts-.*|gcc-\d+-base|init-system-helpers|java-common|lib.*-perl|libc-bin|libc-gconv-modules-extra|libc-l10n|locales.*|logrotate|lsb-base|media-types|netbase|passwd|perl.*|postgresql(-client)?-common|procps|python3.*|sed|sensible-utils|socat|ssl-cert|sudo|systemd.*|sysvinit-utils|tar|tzdata|ucf|util-linux)$/;

/** Not needed to run anything. The copyright files in usr/share/doc stay. */
const omitted = [
  './var',
  './usr/include',
  './usr/lib/systemd',
  './usr/lib/tmpfiles.d',
  './usr/lib/sysusers.d',
  './usr/share/bash-completion',
  './usr/share/bug',
  './usr/share/doc/*/examples*',
  './usr/share/doc/*/NEWS*',
  './usr/share/doc/*/*.gz',
  './usr/share/doc/*/html',
  './usr/share/info',
  './usr/share/lintian',
  './usr/share/locale',
  './usr/share/man',
  './usr/lib/*/gconv',
];

/** @type {Record<string, Recipe>} */
export const recipes = {
  patchelf: { title: 'patchelf', roots: ['patchelf'] },
  redis: { title: 'Redis', roots: ['redis-server', 'redis-tools'] },
  postgres: {
    title: 'PostgreSQL with pgvector',
    roots: ['postgresql-18', 'postgresql-client-18', 'postgresql-18-pgvector'],
    omit: ['./usr/lib/postgresql/*/lib/bitcode', './usr/share/postgresql/*/tsearch_data/*.affix.sample'],
  },
  java: {
    title: 'Java',
    roots: ['openjdk-25-jre-headless'],
    // smart cards, pictures and the NSS key store
    without: /^(libjpeg62-turbo|liblcms2-2|libpcsclite1|libnss3|libnspr4|libsqlite3-0)$/,
    omit: ['./usr/lib/debug', './usr/lib/jvm/*/docs', './usr/lib/jvm/*/man'],
    runPath: '$ORIGIN/../lib:$ORIGIN/../lib/server',
  },
  rabbitmq: {
    title: 'RabbitMQ with Erlang',
    roots: ['rabbitmq-server'],
    without: /^(rabbitmqadmin-ng|openssl)$/,
    omit: ['./usr/lib/erlang/lib/*/src', './usr/lib/erlang/lib/*/include', './usr/lib/erlang/lib/*/examples'],
  },
  // for users without an entry in /etc/passwd
  'nss-wrapper': {
    title: 'nss_wrapper',
    roots: ['libnss-wrapper'],
    without: /^libc6$/,
    suite: 'trixie',
    isLibrary: true,
  },
  // what tests need; nobody else fetches these
  compose: { title: 'Docker Compose', roots: ['docker-compose'] },
  'postgres-17': {
    title: 'PostgreSQL 17 with pgvector',
    roots: ['postgresql-17', 'postgresql-client-17', 'postgresql-17-pgvector'],
    // only its just-in-time compiler needs LLVM; without its library Postgres goes without
    without: /^libllvm/,
    omit: ['./usr/lib/postgresql/*/lib/bitcode', './usr/lib/postgresql/*/lib/llvmjit*'],
    suite: 'trixie',
  },
  // the console is tested in it
  chromium: {
    title: 'Chromium',
    roots: ['chromium-headless-shell', 'fonts-dejavu-core', 'fonts-dejavu-mono'],
    // it draws by itself: no driver of a graphics card, no X programs
    without:
      /^(libgl1-mesa-dri|libglx-mesa0|mesa-libgallium|libllvm.*|libz3-4|x11-.*|xdg-utils|libsensors.*|libdrm-.*)$/,
    suite: 'trixie',
  },
  'redis-7.0': { title: 'Redis 7.0', roots: ['redis-server', 'redis-tools'], suite: 'bookworm' },
};

/** @param {string} name of a program @returns {Recipe} */
export function recipeOf(name) {
  const recipe = recipes[name];
  if (!recipe) throw new Error(`unknown program '${name}'`);
  return recipe;
}

/** @param {Recipe} recipe @param {string} name of a package */
export const leavesOut = (recipe, name) => systemPackages.test(name) || recipe.without?.test(name) === true;

/** @param {Recipe} recipe @returns {string[]} patterns of tar */
export const omittedPaths = (recipe) => [...omitted, ...(recipe.omit ?? [])];
