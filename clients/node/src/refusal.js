// Why a `connect` of the agent fails.

import { describe } from './errors.js';

/** Settings that cannot be used, or not now; becomes the message `refused`. */
export class Refusal extends Error {
  /**
   * @param {'invalid' | 'login' | 'unreachable'} kind
   * @param {string} field the path of the setting to blame, or an empty text
   * @param {string} message in the library's words if it has any
   */
  constructor(kind, field, message) {
    super(message);
    this.kind = kind;
    this.field = field;
  }
}

// What servers say, by the setting that it blames. All other errors can pass.
const LOGIN = /\b(WRONGPASS|NOAUTH|NOPERM)\b|\bERR:? (AUTH <password> called without|invalid password|Client sent AUTH)/;
const DATABASE = /DB index is out of range|invalid DB index|SELECT is not allowed/;
const TOPOLOGY = /cluster support disabled/;

/**
 * Says what an error means that a library met while it connected.
 *
 * @param {unknown} error
 * @param {string} [loginField] the setting to blame if the login failed
 * @returns {Refusal}
 */
export function refusalFor(error, loginField = 'password') {
  const words = describe(error);
  if (LOGIN.test(words)) {
    return new Refusal('login', loginField, words);
  }
  if (DATABASE.test(words)) {
    return new Refusal('invalid', 'database', words);
  }
  if (TOPOLOGY.test(words)) {
    return new Refusal('invalid', 'topology', words);
  }
  return new Refusal('unreachable', '', words);
}
