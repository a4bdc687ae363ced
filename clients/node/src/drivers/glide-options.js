// The options of Valkey GLIDE 2.5.2, after its declarations of GlideClientConfiguration and GlideClusterClientConfiguration.

import { byAdapter, byTarget, choice, code, either, flag, integer, number, rule, text } from '../options.js';

const advancedConfiguration = {
  connectionTimeout: integer,
  tcpNoDelay: flag,
  pubsubReconciliationIntervalMs: integer,
  tlsAdvancedConfiguration: byTarget,
};

const base = {
  requestTimeout: integer,
  inflightRequestsLimit: integer,
  lazyConnect: flag,
  connectionBackoff: {
    numberOfRetries: integer,
    factor: integer,
    exponentBase: integer,
    jitterPercent: integer,
  },
  clientCircuitBreaker: {
    windowSizeMs: integer,
    failureRateThreshold: number,
    minErrors: integer,
    openTimeoutMs: integer,
    countTimeouts: flag,
    consecutiveSuccesses: integer,
  },
  compression: {
    enabled: flag,
    backend: choice('ZSTD', 'LZ4'),
    compressionLevel: integer,
    minCompressionSize: integer,
    maxDecompressedSize: integer,
  },
  readFrom: choice('primary', 'preferReplica', 'AZAffinity', 'AZAffinityReplicasAndPrimary', 'allNodes'),
  clientAz: text,
  protocol: choice('RESP2', 'RESP3'),
  clientName: text,
  libName: text,
  clientInfoTag: text,
  advancedConfiguration,
  clientSideCache: code,
  addressResolver: code,
  pubsubSubscriptions: code,
  defaultDecoder: byAdapter,
  addresses: byTarget,
  databaseId: byTarget,
  useTLS: byTarget,
  credentials: byTarget,
};

export const optionsOf = {
  standalone: {
    ...base,
    readOnly: flag,
    nodeDiscoveryMode: choice('Standard', 'Static', 'DiscoverAll'),
  },

  cluster: {
    ...base,
    advancedConfiguration: { ...advancedConfiguration, refreshTopologyFromInitialNodes: flag },
    periodicChecks: either(
      choice('enabledDefaultConfigs', 'disabled'),
      rule('a map {duration_in_sec}', (value) => integer.accepts(value?.duration_in_sec)),
    ),
    recoveryRequestsQueueSize: integer,
  },
};
