// The options of ioredis 6.0.0, after its declarations of RedisOptions, SentinelConnectionOptions and ClusterOptions.

import { addressMap, byTarget, choice, code, either, flag, integer, never, rule, text, texts } from '../options.js';

/** The library takes a function here, or null for none. */
const noStrategy = choice(null);

const servers = rule(
  'a list of servers {ip, port}',
  (value) => Array.isArray(value) && value.every((server) => text.accepts(server?.ip) && text.accepts(server?.port)),
);

const commander = {
  keyPrefix: text,
  showFriendlyErrorStack: flag,
  enableAutoPipelining: flag,
  autoPipeliningIgnoredCommands: texts,
  scripts: code,
  lazyConnect: flag,
  himportFieldsets: code,
};

const connection = {
  ...commander,
  Connector: code,
  commandTimeout: integer,
  blockingTimeout: integer,
  blockingTimeoutGrace: integer,
  socketTimeout: integer,
  connectTimeout: integer,
  disconnectTimeout: integer,
  keepAlive: integer,
  noDelay: flag,
  family: choice(0, 4, 6),
  connectionName: text,
  disableClientInfo: flag,
  clientInfoTag: text,
  autoResubscribe: flag,
  autoResendUnfulfilledCommands: flag,
  reconnectOnError: noStrategy,
  stringNumbers: flag,
  protocol: choice(2, 3),
  replyMapping: choice('legacy', 'resp3'),
  maxRetriesPerRequest: either(integer, choice(null)),
  maxLoadingRetryTime: integer,
  enableReadyCheck: flag,
  monitor: never('would make the connection useless for commands'),
  host: byTarget,
  port: byTarget,
  path: byTarget,
  username: byTarget,
  password: byTarget,
  db: byTarget,
  tls: byTarget,
};

const redis = {
  ...connection,
  retryStrategy: noStrategy,
  enableOfflineQueue: flag,
  readOnly: flag,
};

export const optionsOf = {
  standalone: redis,

  sentinel: {
    ...redis,
    role: choice('master', 'slave'),
    preferredSlaves: servers,
    sentinelRetryStrategy: noStrategy,
    sentinelReconnectStrategy: noStrategy,
    sentinelCommandTimeout: integer,
    sentinelMaxConnections: integer,
    updateSentinels: flag,
    failoverDetector: flag,
    natMap: addressMap,
    sentinels: byTarget,
    name: byTarget,
    sentinelUsername: byTarget,
    sentinelPassword: byTarget,
    sentinelTLS: byTarget,
    enableTLSForSentinelMode: byTarget,
  },

  cluster: {
    ...commander,
    redisOptions: connection,
    clusterRetryStrategy: noStrategy,
    clusterNodeRetryStrategy: noStrategy,
    enableOfflineQueue: flag,
    enableReadyCheck: flag,
    scaleReads: choice('master', 'slave', 'all'),
    maxRedirections: integer,
    retryDelayOnFailover: integer,
    retryDelayOnClusterDown: integer,
    retryDelayOnTryAgain: integer,
    retryDelayOnMoved: integer,
    slotsRefreshTimeout: integer,
    slotsRefreshInterval: integer,
    shardedSubscribers: flag,
    useSRVRecords: flag,
    resolveSrv: code,
    dnsLookup: code,
    natMap: addressMap,
  },
};
