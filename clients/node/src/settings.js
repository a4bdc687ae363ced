// The settings of `connect`, as the drivers need them.

import { createSecureContext } from 'node:tls';
import { Refusal } from './refusal.js';

/**
 * @typedef {object} Settings
 * @property {'standalone' | 'sentinel' | 'cluster'} topology
 * @property {{host: string, port: number}[]} addresses
 * @property {string} [primaryName]
 * @property {string} [username]
 * @property {string} [password]
 * @property {string} [sentinelUsername]
 * @property {string} [sentinelPassword]
 * @property {number} database
 * @property {Tls} [tls]
 * @property {Record<string, unknown>} options
 * @property {number} inFlight
 *
 * @typedef {object} Tls
 * @property {string} [ca]
 * @property {string} [certificate]
 * @property {string} [key]
 * @property {string} [serverName]
 * @property {boolean} [insecure]
 */

/**
 * Reads the settings as the agent sent them: what is nil there is undefined here, so that libraries apply their defaults.
 *
 * @param {Record<string, unknown>} message
 * @returns {Settings}
 */
export function readSettings(message) {
  const settings = withoutNil(message);
  return {
    ...settings,
    addresses: settings.addresses.map(parseAddress),
    database: Number(settings.database ?? 0),
    tls: settings.tls && withoutNil(settings.tls),
    options: plainNumbers(settings.options ?? {}),
    inFlight: Number(settings.inFlight),
  };
}

/**
 * The address of the only server. Libraries would silently leave out further ones.
 *
 * @param {Settings} settings
 */
export function onlyAddress({ addresses }) {
  if (addresses.length > 1) {
    throw new Refusal('invalid', 'addresses', 'a standalone client has one address');
  }
  return addresses[0];
}

/**
 * The options of Node.js for TLS, which the libraries that are written in JavaScript hand on.
 *
 * @param {Settings} settings
 * @returns {import('node:tls').ConnectionOptions | undefined}
 */
export function tlsOptions({ tls }) {
  if (tls === undefined) {
    return undefined;
  }
  const { ca, certificate: cert, key } = tls;
  for (const [field, used] of Object.entries({ ca: { ca }, certificate: { cert }, key: { cert, key } })) {
    try {
      createSecureContext(used);
    } catch (error) {
      throw new Refusal('invalid', `tls.${field}`, error.message);
    }
  }
  return withoutNil({ ca, cert, key, servername: tls.serverName, rejectUnauthorized: tls.insecure ? false : undefined });
}

function withoutNil(map) {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null && value !== undefined));
}

function parseAddress(address) {
  const colon = address.lastIndexOf(':');
  return {
    host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
    port: Number(address.slice(colon + 1)),
  };
}

/** Options are given to libraries that know no BigInt. */
function plainNumbers(value) {
  if (typeof value === 'bigint') {
    return Number(value);
  }
  if (Array.isArray(value)) {
    return value.map(plainNumbers);
  }
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainNumbers(inner)]));
  }
  return value;
}
