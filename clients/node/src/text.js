/**
 * Shortens a text to so many bytes of UTF-8, without breaking a character: the protocol bounds its texts.
 *
 * @param {string} text
 * @param {number} bytes
 */
export function clip(text, bytes) {
  if (Buffer.byteLength(text) <= bytes) {
    return text;
  }
  // The decoder keeps a character that the cut has broken to itself.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytes), { stream: true });
}
