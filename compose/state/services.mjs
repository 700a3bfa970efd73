import { readFileSync } from 'node:fs';

/**
 * What each service says of itself (`card` in src/services), as `npm run docs` has written it: the gateway cannot be asked
 * before it is compiled.
 * @typedef {object} Credential
 * @property {string} variable
 * @property {{by: string, as?: string, prefix?: string, principal?: string}} made
 * @property {string} inTests
 * @property {string[]} otherNames
 * @property {{path: string, member: string}} [toldAt]
 *
 * @typedef {object} Card
 * @property {string[]} needs
 * @property {Credential[]} credentials
 * @property {string[]} urlNames
 * @property {Record<string, string>} variables
 */

/** @type {Record<string, Card>} */
export const cards = JSON.parse(readFileSync(new URL('./services.json', import.meta.url), 'utf8'));

export const urlVariable = (service) => `PORTICO_${service.toUpperCase()}_URL`;
