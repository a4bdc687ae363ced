// One conversation with the agent, from hello to the end of the socket.

import { encodable } from './commands.js';
import { report } from './diagnostics.js';
import { describe } from './errors.js';
import { encodeFrame, FrameReader, MAX_MESSAGE } from './frames.js';
import { flatten } from './options.js';
import { Outcomes } from './outcomes.js';
import { Refusal, refusalFor } from './refusal.js';
import { readSettings } from './settings.js';
import { clip } from './text.js';

const PROTOCOL_VERSION = 1;
const REPLIES_WANTED = 1;
const MAX_TEXT = 1000;

/** Within a minute the agent wants an answer. The slowest one of a library takes 17 s (node-redis, with sentinels). */
const CONNECT_LIMIT = 30_000;
const CLOSE_LIMIT = 3_000;

const now = () => process.hrtime.bigint();

/**
 * A client of a library. Each driver is a class of this shape.
 *
 * @typedef {object} Client
 * @property {() => Promise<void>} connect
 * @property {(commands: Buffer[][]) => Promise<unknown[]>} perform makes the library's call; gives a reply for each command
 * @property {(error: Error, commands: Buffer[][]) => {class: string, text: string}} classify what the application sees of a call that failed
 * @property {() => object} options those in force
 * @property {() => unknown} close leaves nothing open, whatever is in flight
 */

export class Session {
  #socket;
  #driver;
  #fail;
  #reader = new FrameReader();
  #outcomes = new Outcomes((outcomes) => this.#guard(() => this.#sendOutcomes(outcomes)));
  /** @type {Client | undefined} */
  #client;
  #state = 'idle';

  /**
   * @param {import('node:net').Socket} socket
   * @param {{name: string, library: string, version: string, Client: new (settings: import('./settings.js').Settings) => Client}} driver
   * @param {(error: unknown) => void} fail ends the process: the session cannot go on
   */
  constructor(socket, driver, fail) {
    this.#socket = socket;
    this.#driver = driver;
    this.#fail = fail;
  }

  start() {
    const { name, library, version } = this.#driver;
    this.#send(['hello', PROTOCOL_VERSION, name, library, version, `Node.js ${process.versions.node}`]);
    this.#socket.on('data', (chunk) => this.#guard(() => this.#receive(chunk)));
  }

  /** Closes the library's client, or gives up if it hangs. */
  async close() {
    try {
      await within(CLOSE_LIMIT, this.#client?.close());
    } catch (error) {
      report(error);
    }
  }

  #receive(chunk) {
    // Many requests take their time, and outcomes do not wait for them.
    this.#outcomes.flush();
    for (const message of this.#reader.read(chunk)) {
      this.#handle(message);
    }
  }

  #handle([name, ...fields]) {
    if (name === 'ping') {
      this.#pong(fields[0]);
    } else if (name === 'requests' && this.#state === 'ready') {
      for (const request of fields[0]) {
        this.#perform(request).catch(this.#fail);
      }
    } else if (name === 'connect' && this.#state === 'idle') {
      this.#connect(fields[0]).catch(this.#fail);
    } else {
      throw new Error(`the agent sent "${name}" to an adapter that is ${this.#state}`);
    }
  }

  async #connect(message) {
    this.#state = 'connecting';
    const settings = readSettings(message);
    try {
      this.#client = this.#create(settings);
      await within(CONNECT_LIMIT, this.#client.connect());
      this.#state = 'ready';
      this.#send(['ready', settings.inFlight, flatten(this.#client.options())]);
    } catch (error) {
      await this.close();
      this.#client = undefined;
      this.#state = 'idle';
      const { kind, field, message } = error instanceof Refusal ? error : refusalFor(error);
      this.#send(['refused', kind, field, clip(message, MAX_TEXT)]);
    }
  }

  #create(settings) {
    try {
      return new this.#driver.Client(settings);
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal('invalid', 'options', describe(error));
    }
  }

  async #perform([id, flags, commands]) {
    let outcome = 'ok';
    let text = null;
    let replies = null;
    let failure;
    const sent = now();
    try {
      replies = await this.#client.perform(commands);
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
    }
    const done = now();
    if (failure !== undefined) {
      ({ class: outcome, text } = this.#client.classify(failure, commands));
    } else if (commands.length === 1 && replies[0] === null) {
      outcome = 'nil';
    }
    const wanted = replies !== null && (Number(flags) & REPLIES_WANTED) !== 0;
    this.#outcomes.add([id, sent, done, outcome, text && clip(text, MAX_TEXT), wanted ? replies.map(encodable) : null]);
  }

  #sendOutcomes(outcomes) {
    const frame = encodeFrame(['outcomes', outcomes]);
    if (frame !== undefined) {
      this.#socket.write(frame);
    } else if (outcomes.length > 1) {
      const half = outcomes.length >> 1;
      this.#sendOutcomes(outcomes.slice(0, half));
      this.#sendOutcomes(outcomes.slice(half));
    } else {
      this.#fail(new Error(`the replies to a request are longer than ${MAX_MESSAGE} bytes`));
    }
  }

  #pong(time) {
    const { user, system } = process.cpuUsage();
    this.#send(['pong', time, now(), BigInt(user + system) * 1000n, process.memoryUsage.rss()]);
  }

  #send(message) {
    this.#socket.write(encodeFrame(message));
  }

  /** A defect of the adapter or of the agent ends the process, unlike one of the library. */
  #guard(action) {
    try {
      action();
    } catch (error) {
      this.#fail(error);
    }
  }
}

/** Waits for a promise, but not for ever. */
async function within(limit, promise) {
  let timer;
  const expired = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer of the library within ${limit / 1000} s`)), limit);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}
