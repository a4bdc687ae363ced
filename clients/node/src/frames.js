// Frames of the adapter protocol: a length of 4 bytes, and one MessagePack array.

import { Decoder, Encoder } from '@msgpack/msgpack';

export const MAX_MESSAGE = 16 * 1024 * 1024;

const HEADER = 4;

// Integers of 64 bits are BigInts, so that times and ids stay exact.
const encoder = new Encoder({ useBigInt64: true });
const decoder = new Decoder({ useBigInt64: true });

/**
 * Encodes a message. The result is undefined if it were longer than a message may be.
 *
 * @param {unknown[]} message
 * @returns {Buffer | undefined}
 */
export function encodeFrame(message) {
  const body = encoder.encodeSharedRef(message);
  if (body.length > MAX_MESSAGE) {
    return undefined;
  }
  const frame = Buffer.allocUnsafe(HEADER + body.length);
  frame.writeUInt32BE(body.length);
  frame.set(body, HEADER);
  return frame;
}

/** Cuts a stream of chunks into messages. */
export class FrameReader {
  #chunks = [];
  #buffered = 0;
  /** The length of the message that is being received, once its header is here. */
  #length;

  /**
   * Takes the next chunk, and yields the messages that it completes. Binary values are views of the chunk.
   *
   * @param {Buffer} chunk
   * @returns {Generator<unknown[]>}
   */
  *read(chunk) {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    for (;;) {
      if (this.#length === undefined) {
        if (this.#buffered < HEADER) {
          return;
        }
        this.#length = this.#take(HEADER).readUInt32BE();
        if (this.#length > MAX_MESSAGE) {
          throw new Error(`the agent sent a message of ${this.#length} bytes`);
        }
      }
      if (this.#buffered < this.#length) {
        return;
      }
      const body = this.#take(this.#length);
      this.#length = undefined;
      yield decoder.decode(body);
    }
  }

  /** Removes so many bytes, which are here. Chunks are joined once only, when all bytes of a message have arrived. */
  #take(length) {
    if (length > 0 && this.#chunks[0].length < length) {
      this.#chunks = [Buffer.concat(this.#chunks)];
    }
    const [first = Buffer.alloc(0)] = this.#chunks;
    const rest = first.subarray(length);
    if (rest.length > 0) {
      this.#chunks[0] = rest;
    } else {
      this.#chunks.shift();
    }
    this.#buffered -= length;
    return first.subarray(0, length);
  }
}
