// GlideNode: the package `@valkey/valkey-glide`, whose core is written in Rust.

import {
  Batch,
  CircuitBreakerError,
  ClosingError,
  ClusterBatch,
  CompressionBackend,
  ConfigurationError,
  ConnectionError,
  Decoder,
  DEFAULT_CONNECTION_TIMEOUT_IN_MILLISECONDS,
  DEFAULT_INFLIGHT_REQUESTS_LIMIT,
  DEFAULT_REQUEST_TIMEOUT_IN_MILLISECONDS,
  GlideClient,
  GlideClusterClient,
  Logger,
  NodeDiscoveryMode,
  ProtocolVersion,
  RequestError,
  TimeoutError,
} from '@valkey/valkey-glide';
import { describe } from '../errors.js';
import { checkOptions } from '../options.js';
import { Refusal } from '../refusal.js';
import { optionsOf } from './glide-options.js';

// The core would write a line to standard output for each request that fails.
Logger.setLoggerConfig('off');

const BYTES = { decoder: Decoder.Bytes };

// The library puts names of its own in the place of the first word of some error replies.
const SERVER_ERROR = /^An error was signalled by the server:? ?- (\w+)(?:: (.*))?$/s;
const FIRST_WORDS = {
  ResponseError: 'ERR',
  ExecAbortError: 'EXECABORT',
  BusyLoadingError: 'LOADING',
  NoScriptError: 'NOSCRIPT',
  Moved: 'MOVED',
  Ask: 'ASK',
  TryAgain: 'TRYAGAIN',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  MasterDown: 'MASTERDOWN',
  ReadOnly: 'READONLY',
  NotBusy: 'NOTBUSY',
  PermissionDenied: 'NOPERM',
};
const OTHER_ERROR = /^([A-Z][A-Z0-9_]*): (.*)$/s;

const NOT_SENT = ['Reached maximum inflight requests', 'Unable to execute requests; the client is closed'];
// Kinds of errors of the core, as they stand among the replies of a pipeline.
const BROKEN = /^(FatalSendError|FatalReceiveError|IoError|AllConnectionsUnavailable|ConnectionNotFoundForRoute)\b/;

export class Client {
  #cluster;
  #configuration;
  #opening;
  #client;

  /** @param {import('../settings.js').Settings} settings */
  constructor(settings) {
    if (settings.topology === 'sentinel') {
      throw new Refusal('invalid', 'topology', 'Valkey GLIDE does not know Sentinel');
    }
    checkOptions(settings.options, optionsOf[settings.topology]);
    this.#cluster = settings.topology === 'cluster';
    this.#configuration = configurationOf(settings);
  }

  async connect() {
    this.#opening = (this.#cluster ? GlideClusterClient : GlideClient).createClient(this.#configuration);
    try {
      this.#client = await this.#opening;
    } catch (error) {
      throw error instanceof ConfigurationError ? new Refusal('invalid', 'options', error.message) : error;
    }
    await this.perform([[Buffer.from('PING')]]);
  }

  async perform(commands) {
    if (commands.length === 1) {
      return [decoded(await this.#client.customCommand(commands[0], BYTES))];
    }
    const batch = this.#cluster ? new ClusterBatch(false) : new Batch(false);
    for (const words of commands) {
      batch.customCommand(words);
    }
    const replies = await this.#client.exec(batch, false, BYTES);
    const errors = replies.filter((reply) => reply instanceof Error);
    if (errors.length > 0) {
      throw errors.find((error) => replyOf(error) === undefined) ?? errors[0];
    }
    return replies.map(decoded);
  }

  classify(error) {
    const reply = replyOf(error);
    return reply === undefined ? { class: this.#failure(error), text: describe(error) } : { class: 'reply', text: reply };
  }

  options() {
    const { advancedConfiguration, ...configuration } = this.#configuration;
    return {
      requestTimeout: DEFAULT_REQUEST_TIMEOUT_IN_MILLISECONDS,
      inflightRequestsLimit: DEFAULT_INFLIGHT_REQUESTS_LIMIT,
      ...configuration,
      advancedConfiguration: { connectionTimeout: DEFAULT_CONNECTION_TIMEOUT_IN_MILLISECONDS, ...advancedConfiguration },
    };
  }

  close() {
    // The client may come into being after nobody waits for it any more.
    this.#opening?.then(
      (client) => client.close(),
      () => {},
    );
  }

  #failure(error) {
    const words = describe(error);
    if (error instanceof TimeoutError || words.startsWith('IoError: timed out')) {
      return 'timeout';
    }
    if (error instanceof CircuitBreakerError || NOT_SENT.some((beginning) => words.startsWith(beginning))) {
      return 'refused';
    }
    if (error instanceof ConnectionError && words.includes('- FatalSendError')) {
      // The core says that it has not sent this attempt; in a cluster it may have made others.
      return this.#cluster ? 'lost' : 'refused';
    }
    return error instanceof ConnectionError || error instanceof ClosingError || BROKEN.test(words) ? 'lost' : 'other';
  }
}

/** What the server replied, if the error is a reply of the server. */
function replyOf(error) {
  if (!(error instanceof RequestError)) {
    return undefined;
  }
  const [, kind, detail = ''] = SERVER_ERROR.exec(error.message) ?? [];
  if (kind !== undefined) {
    return `${FIRST_WORDS[kind] ?? kind} ${detail}`;
  }
  const [, word, words] = OTHER_ERROR.exec(error.message) ?? [];
  return word && `${word} ${words}`;
}

/** Maps come as lists of {key, value}. */
function decoded(reply) {
  if (!Array.isArray(reply)) {
    return reply;
  }
  return reply.flatMap((item) => (isEntry(item) ? [decoded(item.key), decoded(item.value)] : [decoded(item)]));
}

const isEntry = (item) => item !== null && typeof item === 'object' && Object.hasOwn(item, 'key') && Object.hasOwn(item, 'value');

function configurationOf(settings) {
  const { options, username, password } = settings;
  const configuration = {
    ...options,
    addresses: settings.addresses,
    databaseId: settings.database,
    credentials: password === undefined && username === undefined ? undefined : { username, password },
    useTLS: settings.tls !== undefined,
  };
  // These options take members of enumerations, which have the names that the settings give.
  if (options.protocol !== undefined) {
    configuration.protocol = ProtocolVersion[options.protocol];
  }
  if (options.nodeDiscoveryMode !== undefined) {
    configuration.nodeDiscoveryMode = NodeDiscoveryMode[options.nodeDiscoveryMode];
  }
  if (options.compression?.backend !== undefined) {
    configuration.compression = { ...options.compression, backend: CompressionBackend[options.compression.backend] };
  }
  if (settings.tls !== undefined) {
    configuration.advancedConfiguration = { ...options.advancedConfiguration, tlsAdvancedConfiguration: tlsOf(settings.tls) };
  }
  return configuration;
}

function tlsOf({ ca, certificate, key, serverName, insecure }) {
  for (const [field, value] of Object.entries({ certificate, key, serverName })) {
    if (value !== undefined) {
      throw new Refusal('invalid', `tls.${field}`, 'Valkey GLIDE for Node.js has no option for it');
    }
  }
  return { rootCertificates: ca, insecure };
}
