// The libraries take any option, and ignore those that they do not know. So that a misspelt one does not change an experiment in
// silence, each driver declares the options of its library, after the type declarations of exactly its version; here they are checked.

import { clip } from './text.js';
import { Refusal } from './refusal.js';

/**
 * What an option may be: a rule, or a map of the options nested in it.
 *
 * @typedef {Rule | {[name: string]: Schema}} Schema
 *
 * @typedef {object} Rule
 * @property {string} [refused] why the option can never be given
 * @property {string} [expected] what its value must be
 * @property {(value: unknown) => boolean} [accepts]
 */

const IS_RULE = Symbol('rule');

export const rule = (expected, accepts) => ({ [IS_RULE]: true, expected, accepts });

export const text = rule('a text', (value) => typeof value === 'string');
export const flag = rule('true or false', (value) => typeof value === 'boolean');
export const number = rule('a number from 0', (value) => Number.isFinite(value) && value >= 0);
export const integer = rule('a whole number from 0', (value) => Number.isSafeInteger(value) && value >= 0);
export const texts = rule('a list of texts', (value) => Array.isArray(value) && value.every(text.accepts));

export const choice = (...values) =>
  rule(values.map((value) => JSON.stringify(value)).join(' or '), (value) => values.includes(value));
export const either = (...rules) =>
  rule(rules.map((each) => each.expected).join(' or '), (value) => rules.some((each) => each.accepts(value)));

/** Where to connect to instead of an address that the servers name. */
export const addressMap = rule(
  'a map of addresses {host, port}',
  (value) => isMap(value) && Object.values(value).every((node) => text.accepts(node?.host) && integer.accepts(node?.port)),
);

export const never = (why) => ({ [IS_RULE]: true, refused: why });
export const byTarget = never('is set by the target');
export const byAdapter = never('is set by the adapter');
export const code = never('takes code of the application, which settings cannot carry');

/**
 * Refuses options that the library does not have, or whose value it could not use.
 *
 * @param {unknown} options
 * @param {Schema} schema
 * @param {string} [path]
 */
export function checkOptions(options, schema, path = 'options') {
  if (!isMap(options)) {
    throw new Refusal('invalid', path, 'must be a map');
  }
  for (const [name, value] of Object.entries(options)) {
    const field = clip(`${path}.${name}`, 128);
    if (!Object.hasOwn(schema, name)) {
      throw new Refusal('invalid', field, 'the library has no such option');
    }
    const expected = schema[name];
    if (!expected[IS_RULE]) {
      checkOptions(value, expected, field);
    } else if (expected.refused) {
      throw new Refusal('invalid', field, expected.refused);
    } else if (!expected.accepts(value)) {
      throw new Refusal('invalid', field, `must be ${expected.expected}`);
    }
  }
}

const SECRETS = new Set([
  'password',
  'sentinelPassword',
  'credentials',
  'credentialsProvider',
  'ca',
  'cert',
  'key',
  'rootCertificates',
]);
const MAX_REPORTED = 200;
const MAX_BYTES = 256;

/**
 * The options in force, flat, without secrets and functions.
 *
 * @param {object} options as the library holds them
 * @returns {Record<string, string | number | boolean | null>}
 */
export function flatten(options) {
  const flat = {};
  const visit = (value, path) => {
    if (Object.keys(flat).length === MAX_REPORTED) {
      return;
    }
    if (value === null || typeof value === 'boolean' || typeof value === 'number') {
      flat[path] = value;
    } else if (typeof value === 'string') {
      flat[path] = clip(value, MAX_BYTES);
    } else if (typeof value === 'object') {
      for (const [name, inner] of Object.entries(value)) {
        if (!SECRETS.has(name)) {
          visit(inner, clip(path === '' ? name : `${path}.${name}`, MAX_BYTES));
        }
      }
    }
  };
  visit(options, '');
  return flat;
}

function isMap(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
