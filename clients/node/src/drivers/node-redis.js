// NodeRedis: the package `redis`.

import {
  ClientClosedError,
  ClientOfflineError,
  ConnectionTimeoutError,
  createClient,
  createCluster,
  createSentinel,
  DisconnectsClientError,
  ErrorReply,
  MaxCommandRedirectionsError,
  RESP_TYPES,
  RootNodesUnavailableError,
  SocketClosedUnexpectedlyError,
  SocketTimeoutDuringMaintenanceError,
  SocketTimeoutError,
  TimeoutError,
} from 'redis';
import { keyOf } from '../commands.js';
import { report } from '../diagnostics.js';
import { describe, isSystemError } from '../errors.js';
import { checkOptions } from '../options.js';
import { refusalFor } from '../refusal.js';
import { onlyAddress, tlsOptions } from '../settings.js';
import { optionsOf } from './node-redis-options.js';

// By default replies are decoded as UTF-8, which loses binary values.
const typeMapping = {
  [RESP_TYPES.SIMPLE_STRING]: Buffer,
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.VERBATIM_STRING]: Buffer,
  [RESP_TYPES.MAP]: Array,
};

const LOST = [ConnectionTimeoutError, DisconnectsClientError, RootNodesUnavailableError, SocketClosedUnexpectedlyError];
const NO_PRIMARY = ['None of the sentinels are available', 'no valid master node'];

export class Client {
  #topology;
  #options;
  #client;

  /** @param {import('../settings.js').Settings} settings */
  constructor(settings) {
    checkOptions(settings.options, optionsOf[settings.topology]);
    this.#topology = TOPOLOGIES[settings.topology];
    this.#options = this.#topology.options(settings);
    this.#client = this.#topology.create(this.#options);
    for (const event of ['error', 'node-error']) {
      this.#client.on(event, report);
    }
  }

  async connect() {
    await this.#topology.connect(this.#client);
    await this.perform([[Buffer.from('PING')]]);
  }

  async perform(commands) {
    if (commands.length === 1) {
      return [await this.#topology.send(this.#client, commands[0])];
    }
    const pipeline = this.#client.multi();
    for (const words of commands) {
      this.#topology.add(pipeline, words);
    }
    return pipeline.execAsPipeline();
  }

  classify(error, commands) {
    if (error instanceof MaxCommandRedirectionsError) {
      return { class: 'reply', text: describe(error.cause) };
    }
    if (error instanceof ErrorReply) {
      return { class: 'reply', text: error.message };
    }
    return { class: this.#failure(error, commands), text: describe(error) };
  }

  options() {
    // The client keeps the time limit of commands to itself, although it is the default that users meet first.
    const { timeout } = this.#client.commandOptions ?? this.#client._commandOptions;
    return { ...this.#options, commandOptions: { ...this.#options.commandOptions, timeout } };
  }

  close() {
    return this.#client.destroy();
  }

  #failure(error, commands) {
    if (error instanceof SocketTimeoutError || error instanceof SocketTimeoutDuringMaintenanceError) {
      return 'timeout';
    }
    // Only a standalone client makes a single attempt. With sentinels, a command is sent again after its connection broke; in a
    // cluster, one of many keys is split over the nodes.
    const single = this.#topology === TOPOLOGIES.standalone;
    if (error instanceof TimeoutError) {
      // The limit is for the time in the queue: RedisCommandsQueue lifts it when it writes the command.
      return single ? 'refused' : 'timeout';
    }
    if (error instanceof ClientClosedError || error instanceof ClientOfflineError) {
      return single ? 'refused' : 'lost';
    }
    if (error.message === 'The queue is full') {
      // The first commands of a pipeline may have found a place.
      return single && commands.length === 1 ? 'refused' : 'other';
    }
    const lost = LOST.some((type) => error instanceof type) || NO_PRIMARY.includes(error.message) || isSystemError(error);
    return lost ? 'lost' : 'other';
  }
}

/** Options for the connections to Redis itself; `base` are those that the settings give. */
function nodeOptions(base, settings) {
  const { username, password, database } = settings;
  return { ...base, username, password, database, socket: socketOptions(base, settings) };
}

function socketOptions(base, settings, address) {
  const tls = tlsOptions(settings);
  return { ...base?.socket, ...(tls && { tls: true, ...tls }), ...address };
}

/** Connects; but if there is no point in waiting, refuses at the first sign of that. Clients try again for ever. */
function connectUnless(client, events) {
  return new Promise((resolve, reject) => {
    let last;
    for (const [event, sign] of Object.entries(events)) {
      client.on(event, (error) => {
        last = error;
        const refusal = sign(error);
        if (refusal !== undefined) {
          reject(refusal);
        }
      });
    }
    // The client's own error does not say why no sentinel, or no node, would do.
    client.connect().then(resolve, (error) => reject(new Error(`${describe(error)}: ${describe(last)}`)));
  });
}

/** A refusal that further attempts of the library will not change. */
function lasting(error, loginField) {
  const refusal = refusalFor(error, loginField);
  return refusal.kind === 'unreachable' ? undefined : refusal;
}

const TOPOLOGIES = {
  standalone: {
    create: createClient,

    options(settings) {
      const { options } = settings;
      return {
        ...nodeOptions(options, settings),
        socket: socketOptions(options, settings, onlyAddress(settings)),
        commandOptions: { ...options.commandOptions, typeMapping },
      };
    },

    connect: (client) => connectUnless(client, { error: refusalFor }),
    send: (client, words) => client.sendCommand(words),
    add: (pipeline, words) => pipeline.addCommand(words),
  },

  sentinel: {
    create: createSentinel,

    options(settings) {
      const { options, sentinelUsername, sentinelPassword } = settings;
      return {
        ...options,
        name: settings.primaryName,
        sentinelRootNodes: settings.addresses,
        // Pipelines take the type mapping from the connection only.
        nodeClientOptions: { ...nodeOptions(options.nodeClientOptions, settings), commandOptions: { typeMapping } },
        sentinelClientOptions: {
          ...options.sentinelClientOptions,
          username: sentinelUsername,
          password: sentinelPassword,
          socket: socketOptions(options.sentinelClientOptions, settings),
        },
        commandOptions: { ...options.commandOptions, typeMapping },
        // Otherwise nobody learns why the connection to the primary fails.
        passthroughClientErrorEvents: true,
      };
    },

    connect: (client) =>
      connectUnless(client, {
        error: (error) => lasting(error, describe(error).startsWith('Master Client') ? 'password' : 'sentinelPassword'),
      }),

    send: (client, words) => client.sendCommand(false, words),
    add: (pipeline, words) => pipeline.addCommand(false, words),
  },

  cluster: {
    create: createCluster,

    options(settings) {
      const { options } = settings;
      return {
        ...options,
        rootNodes: settings.addresses.map((address) => ({ socket: address })),
        // Pipelines take the type mapping from the connection only.
        defaults: { ...nodeOptions(options.defaults, settings), commandOptions: { typeMapping } },
        commandOptions: { ...options.commandOptions, typeMapping },
      };
    },

    connect: (client) => connectUnless(client, { error: lasting, 'node-error': lasting }),
    // Undefined: the library finds out itself whether a command only reads.
    send: (client, words) => client.sendCommand(keyOf(words), undefined, words),
    add: (pipeline, words) => pipeline.addCommand(keyOf(words), undefined, words),
  },
};
