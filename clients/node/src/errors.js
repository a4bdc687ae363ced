// What is known of an error.

/**
 * Says what an error says. Some have no message: those of Node.js for several addresses, and the time limit of node-redis.
 *
 * @param {unknown} error
 * @returns {string}
 */
export function describe(error) {
  if (!(error instanceof Error)) {
    return String(error);
  }
  if (error.message !== '') {
    return error.message;
  }
  return error.errors?.length > 0 ? describe(error.errors[0]) : error.constructor.name;
}

/**
 * Tells the errors of sockets, such as ECONNRESET, from those of Node.js itself, such as ERR_INVALID_ARG_TYPE.
 *
 * @param {Error} error
 */
export function isSystemError(error) {
  return /^E[A-Z]+$/.test(error.code);
}
