// Commands as the agent sends them, and replies as it reads them.

const KEYLESS = new Set(['PING', 'WAIT', 'INFO', 'SCRIPT']);

/**
 * The key by which a command is routed, for libraries that cannot find it themselves.
 *
 * @param {Buffer[]} words
 * @returns {Buffer | undefined}
 */
export function keyOf(words) {
  const name = words[0].toString().toUpperCase();
  if (KEYLESS.has(name)) {
    return undefined;
  }
  if (name === 'EVAL' || name === 'EVALSHA') {
    return Number(words[2]?.toString()) > 0 ? words[3] : undefined;
  }
  if (name === 'XREAD' || name === 'XREADGROUP') {
    return words[words.findIndex((word) => word.toString().toUpperCase() === 'STREAMS') + 1];
  }
  return words[1];
}

/**
 * A reply of a library in the types of the protocol.
 *
 * @param {unknown} reply
 * @returns {unknown}
 */
export function encodable(reply) {
  switch (typeof reply) {
    case 'undefined':
      return null;
    case 'string':
      return Buffer.from(reply);
    case 'number':
      // The encoder writes whole numbers of more than 32 bits as floats, unless they are BigInts.
      return Number.isSafeInteger(reply) && Math.abs(reply) > 0x7fffffff ? BigInt(reply) : reply;
    case 'bigint':
      return BigInt.asIntN(64, reply) === reply ? reply : Buffer.from(String(reply));
    case 'object':
      return encodableObject(reply);
    default:
      return reply;
  }
}

function encodableObject(reply) {
  if (reply === null || Buffer.isBuffer(reply)) {
    return reply;
  }
  if (Array.isArray(reply) || reply instanceof Set) {
    return Array.from(reply, encodable);
  }
  if (reply instanceof Error) {
    return Buffer.from(reply.message);
  }
  const entries = reply instanceof Map ? [...reply] : Object.entries(reply);
  return entries.flat().map(encodable);
}
