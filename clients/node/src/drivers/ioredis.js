// IORedis: the package `ioredis`.

import { Cluster, Redis, ReplyError } from 'ioredis';
import { report } from '../diagnostics.js';
import { describe, isSystemError } from '../errors.js';
import { checkOptions } from '../options.js';
import { refusalFor } from '../refusal.js';
import { onlyAddress, tlsOptions } from '../settings.js';
import { optionsOf } from './ioredis-options.js';

// Most errors of the library are told apart by their messages only.
const NOT_QUEUED = [
  "Stream isn't writeable and enableOfflineQueue options is false",
  "Cluster isn't ready and enableOfflineQueue options is false",
];
const LOST = [
  ...NOT_QUEUED,
  'Connection is closed.',
  'Command aborted due to connection close',
  'Reached the max retries per request limit',
  'Too many Cluster redirections. Last error: Error: Connection is closed.',
  'None of startup nodes is available',
  'Cluster is ended.',
  'All sentinels are unreachable',
];
const REDIRECTED = 'Too many Cluster redirections. Last error: ReplyError: ';

/** Only a request that met a disconnected client, which queues nothing, was certainly not sent. */
class NotSentError extends Error {}

export class Client {
  #client;
  #connected;

  /** @param {import('../settings.js').Settings} settings */
  constructor(settings) {
    checkOptions(settings.options, optionsOf[settings.topology]);
    this.#client = CREATE[settings.topology](settings);
    for (const event of ['error', 'node error', 'sentinelError']) {
      this.#client.on(event, report);
    }
    // The client connects from its constructor on, and for ever. The first error that it reports is its answer.
    this.#connected = new Promise((resolve, reject) => {
      this.#client.once('ready', resolve);
      this.#client.once('error', reject);
    });
  }

  async connect() {
    if (this.#client.status === 'wait') {
      // The option lazyConnect leaves this to the first command.
      this.#client.connect().catch(report);
    }
    try {
      await this.#connected;
    } catch (error) {
      const loginField = error.message.startsWith('All sentinels are unreachable') ? 'sentinelPassword' : 'password';
      throw refusalFor(error.lastNodeError ?? error, loginField);
    }
    await this.perform([[Buffer.from('PING')]]);
  }

  async perform(commands) {
    const offline = this.#client.status !== 'ready';
    try {
      return commands.length === 1 ? [await this.#client.callBuffer(...named(commands[0]))] : await this.#pipeline(commands);
    } catch (error) {
      throw offline && NOT_QUEUED.includes(error.message) ? new NotSentError(error.message) : error;
    }
  }

  async #pipeline(commands) {
    const pipeline = this.#client.pipeline();
    for (const words of commands) {
      pipeline.callBuffer(...named(words));
    }
    const results = await pipeline.exec();
    const errors = results.map(([error]) => error).filter((error) => error !== null);
    if (errors.length > 0) {
      throw errors.find((error) => !(error instanceof ReplyError)) ?? errors[0];
    }
    return results.map(([, reply]) => reply);
  }

  classify(error) {
    const words = describe(error);
    if (error instanceof ReplyError) {
      return { class: 'reply', text: words };
    }
    if (words.startsWith(REDIRECTED)) {
      return { class: 'reply', text: words.slice(REDIRECTED.length) };
    }
    if (error instanceof NotSentError) {
      return { class: 'refused', text: words };
    }
    if (words === 'Command timed out') {
      return { class: 'timeout', text: words };
    }
    const lost = isSystemError(error) || LOST.some((beginning) => words.startsWith(beginning));
    return { class: lost ? 'lost' : 'other', text: words };
  }

  options() {
    return this.#client.options;
  }

  close() {
    this.#client.disconnect();
  }
}

/** The library finds its methods' routing and flags by the lower-case name, as in `redis.get(key)`. */
function named([name, ...args]) {
  return [name.toString().toLowerCase(), ...args];
}

const CREATE = {
  standalone(settings) {
    const { options, username, password, database } = settings;
    return new Redis({ ...options, ...onlyAddress(settings), username, password, db: database, tls: tlsOptions(settings) });
  },

  sentinel(settings) {
    const { options, username, password, database } = settings;
    const tls = tlsOptions(settings);
    return new Redis({
      ...options,
      sentinels: settings.addresses,
      name: settings.primaryName,
      sentinelUsername: settings.sentinelUsername,
      sentinelPassword: settings.sentinelPassword,
      username,
      password,
      db: database,
      ...(tls && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
    });
  },

  cluster(settings) {
    const { options, username, password, database, addresses } = settings;
    const tls = tlsOptions(settings);
    return new Cluster(addresses, {
      ...options,
      redisOptions: { ...options.redisOptions, username, password, db: database, tls },
      // As the library's README has it for TLS: else certificates would have to name addresses instead of hosts.
      ...(tls && { dnsLookup: (host, done) => done(null, host) }),
    });
  },
};
