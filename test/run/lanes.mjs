import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { root } from '../../compose/state/profile.mjs';
import { cards } from '../../compose/state/services.mjs';
import { allBackends } from './backends.mjs';

/**
 * A part of the tests with a set of backends of its own, so that its files, one after the other, may kill and fill them
 * beside the other lanes.
 * @typedef {object} Lane
 * @property {string} name
 * @property {string[]} backends
 * @property {string[]} files from the root
 * @property {boolean} isFiller it waits for nothing, so it takes what time the others leave
 */

/** What tests need, by how their files are called: those of a service what its card says. */
const needs = {
  ...Object.fromEntries(Object.entries(cards).map(([name, card]) => [name, card.needs])),
  admin: ['redis', 'postgres', 'kafka'],
  compose: [],
  package: ['redis'],
  console: allBackends,
  least: ['redis', 'postgres'],
  openapi: allBackends,
  examples: ['redis', 'postgres', 'rabbitmq'],
};

/** The files of the HTTP core that ask all services. */
const httpOfAll = /^test\/integration\/http\/(content-coding|dashboards|reload|tls|unread-replies)\./;

/** Those that ask none, but for the kv of the console. */
const isHttpAlone = (path) => /^test\/integration\/http\/.*\./.test(path) && !httpOfAll.test(path);

/** @param {string} path of a test file or a folder of them, from the root */
const isUnit = (path) => /^test\/(unit|contract\/(architecture|imports|layout))/.test(path);

/** The word that a file of the integration or acceptance ring begins with: a service, or what else it is about. */
const subjectOf = (path) => /^test\/(?:integration|acceptance|full)\/([a-z]+)/.exec(path)?.[1] ?? '';

/** The files for which `npm test` has no time; they start what they need. */
const isFull = (path) => /^test\/full(\/|$)/.test(path);

const testsOfFull = () =>
  readdirSync(join(root, 'test/full'))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/full/${name}`);

/** @returns {string[]} */
function needsOf(path) {
  if (isUnit(path)) return [];
  if (isHttpAlone(path)) return ['redis'];
  // by their names one knows what they need, by the folder's none
  if (path === 'test/full') return testsOfFull().flatMap(needsOf);
  const subject = subjectOf(path);
  // workflows are the queue's
  return needs[subject === 'workflow' ? 'queue' : subject] ?? (isFull(path) ? [] : allBackends);
}

/**
 * The backends that a run of the tests needs.
 * @param {string[]} args what jest is given; anything but names of files and folders may choose any test
 */
export function backendsFor(args) {
  const isPath = (arg) => existsSync(resolve(root, arg));
  if (args.length === 0 || !args.every(isPath)) return allBackends;
  const wanted = args.map((arg) => relative(root, resolve(root, arg))).flatMap(needsOf);
  return allBackends.filter((name) => wanted.includes(name));
}

/** The files of the queue in which a program is ended or hangs: half the time of its tests, nearly all of it waiting. */
const queueFaults =
  /^test\/integration\/queue\/(crash|delays|faults|hanging-destinations|held-messages|replicas|workflow\/faults)\./;

/** @returns {string} the lane of a file */
function laneOf(path) {
  if (isUnit(path)) return 'units';
  if (queueFaults.test(path)) return 'faults';
  if (/\/queue\/workflow\/|\/workflow-/.test(path)) return 'workflow';
  const subject = subjectOf(path);
  if (['compose', 'package'].includes(subject)) return 'launcher';
  if (isHttpAlone(path)) return 'http';
  return order.includes(subject) ? subject : 'rest';
}

function testFiles() {
  const entries = readdirSync(resolve(root, 'test'), { recursive: true, encoding: 'utf8' });
  const files = entries.filter((path) => path.endsWith('.test.ts')).map((path) => `test/${path}`);
  return files.filter((path) => !isFull(path));
}

/** The longest first: it decides when all are done. The files of a service that is not named go with the rest. */
const order = ['faults', 'rest', 'kv', 'broker', 'queue', 'workflow', 'vector', 'launcher', 'http', 'units'];

/** @returns {Lane[]} every test file in one of them */
export function testLanes() {
  const files = testFiles();
  return order.map((name) => {
    const own = files.filter((path) => laneOf(path) === name);
    const wanted = own.flatMap(needsOf);
    return {
      name,
      files: own,
      backends: allBackends.filter((one) => wanted.includes(one)),
      isFiller: name === 'units',
    };
  });
}
