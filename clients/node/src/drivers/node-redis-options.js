// The options of node-redis 6.3.1, after its declarations of RedisClientOptions, RedisClusterOptions and RedisSentinelOptions.

import { addressMap, byAdapter, byTarget, choice, code, either, flag, integer, never, text } from '../options.js';

const unread = never('has no effect on commands that are sent with sendCommand, as the adapter sends them');

const socket = {
  connectTimeout: integer,
  socketTimeout: integer,
  reconnectStrategy: either(choice(false), integer),
  noDelay: flag,
  keepAlive: flag,
  keepAliveInitialDelay: integer,
  family: choice(0, 4, 6),
  autoSelectFamily: flag,
  autoSelectFamilyAttemptTimeout: integer,
  localAddress: text,
  localPort: integer,
  lookup: code,
  minVersion: text,
  maxVersion: text,
  ciphers: text,
  host: byTarget,
  port: byTarget,
  path: byTarget,
  tls: byTarget,
  ca: byTarget,
  cert: byTarget,
  key: byTarget,
  servername: byTarget,
  rejectUnauthorized: byTarget,
};

const commandOptions = {
  timeout: integer,
  asap: flag,
  chainId: code,
  abortSignal: code,
  typeMapping: byAdapter,
};

const scripting = { modules: code, functions: code, scripts: code };

const nodeOptions = {
  ...scripting,
  socket,
  RESP: choice(2, 3),
  name: text,
  commandsQueueMaxLength: integer,
  disableOfflineQueue: flag,
  readonly: flag,
  pingInterval: integer,
  disableClientInfo: flag,
  clientInfoTag: text,
  emitInvalidate: flag,
  maintNotifications: choice('disabled', 'enabled', 'auto'),
  maintEndpointType: choice('auto', 'internal-ip', 'internal-fqdn', 'external-ip', 'external-fqdn', 'none'),
  maintRelaxedCommandTimeout: integer,
  maintRelaxedSocketTimeout: integer,
  clientSideCache: unread,
  keyPrefix: unread,
  url: byTarget,
  username: byTarget,
  password: byTarget,
  credentialsProvider: byTarget,
  database: byTarget,
};

export const optionsOf = {
  standalone: { ...nodeOptions, commandOptions },

  sentinel: {
    ...scripting,
    RESP: choice(2, 3),
    commandOptions,
    nodeClientOptions: nodeOptions,
    sentinelClientOptions: nodeOptions,
    maxCommandRediscovers: integer,
    masterPoolSize: integer,
    replicaPoolSize: never('needs a caller who says which commands only read, which the adapter does not know'),
    reserveClient: flag,
    scanInterval: integer,
    passthroughClientErrorEvents: byAdapter,
    nodeAddressMap: addressMap,
    clientSideCache: unread,
    keyPrefix: unread,
    name: byTarget,
    sentinelRootNodes: byTarget,
  },

  cluster: {
    ...scripting,
    RESP: choice(2, 3),
    commandOptions,
    defaults: nodeOptions,
    minimizeConnections: flag,
    useReplicas: flag,
    maxCommandRedirections: integer,
    topologyRefreshOnReconnectionAttemptStrategy: either(choice(false), integer),
    nodeAddressMap: addressMap,
    clientSideCache: unread,
    keyPrefix: unread,
    rootNodes: byTarget,
  },
};
