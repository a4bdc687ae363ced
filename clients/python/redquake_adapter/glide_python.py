"""GlidePython: the asyncio client of Valkey GLIDE."""

import importlib.metadata
import re

from glide import (
    AdvancedGlideClientConfiguration,
    AdvancedGlideClusterClientConfiguration,
    BackoffStrategy,
    Batch,
    CircuitBreakerError,
    ClosingError,
    ClusterBatch,
    CompressionBackend,
    CompressionConfiguration,
    ConfigurationError,
    ConnectionError,
    GlideClient,
    GlideClientConfiguration,
    GlideClusterClient,
    GlideClusterClientConfiguration,
    NodeAddress,
    NodeDiscoveryMode,
    PeriodicChecksManualInterval,
    PeriodicChecksStatus,
    ProtocolVersion,
    ReadFrom,
    RequestError,
    ServerCredentials,
    TimeoutError,
    TlsAdvancedConfiguration,
)
from glide_shared.config import ClientCircuitBreakerConfiguration

from .settings import (
    Refused,
    arguments,
    check_certificates,
    check_server_name,
    endpoints,
    flat,
    invalid,
    member,
    named,
    parameters,
)

BY_TARGET = {"addresses", "credentials", "database_id", "tls_config", "use_tls"}

# What None stands for: the defaults of GLIDE's core, in glide-core/src/client and redis-rs/redis/src.
CORE_DEFAULTS = {
    "advanced_config.connection_timeout": 2000,
    "inflight_requests_limit": 1000,
    "reconnect_strategy.exponent_base": 2,
    "reconnect_strategy.factor": 100,
    "reconnect_strategy.jitter_percent": 20,
    "reconnect_strategy.num_of_retries": 5,
    "request_timeout": 250,
}

# The core's names for errors of the server that it knows; it cuts their codes off.
CODES = {
    "Ask": "ASK",
    "BusyLoadingError": "LOADING",
    "ClusterDown": "CLUSTERDOWN",
    "CrossSlot": "CROSSSLOT",
    "ExecAbortError": "EXECABORT",
    "MasterDown": "MASTERDOWN",
    "Moved": "MOVED",
    "NoScriptError": "NOSCRIPT",
    "NotBusy": "NOTBUSY",
    "PermissionDenied": "NOPERM",
    "ReadOnly": "READONLY",
    "ResponseError": "ERR",
    "TryAgain": "TRYAGAIN",
}
KNOWN_REPLY = re.compile(r"An error was signalled by the server: ?- (\w+)(?:: (.*))?", re.DOTALL)
OTHER_REPLY = re.compile(r"([A-Z][A-Z0-9_]*): (.*)", re.DOTALL)

# Errors that the core raises before it has sent anything. It resends some requests in a cluster, so that only the
# first counts there.
NOT_STARTED = "Reached maximum inflight requests"
NOT_SENT = "FatalSendError"


class Driver:
    library = "valkey-glide"
    version = importlib.metadata.version(library)
    blocking = False

    @staticmethod
    async def connect(settings):
        cluster = settings["topology"] == "cluster"
        options = settings.get("options") or {}
        client = None
        try:
            configuration, in_force = configure(settings, options, cluster)
            kind = GlideClusterClient if cluster else GlideClient
            # GLIDE blocks the event loop here, for its connection timeout at most.
            client = await kind.create(configuration)
            await client.custom_command(["PING"])
        except Refused:
            raise
        except BaseException as error:
            if client:
                await client.close()
            if isinstance(error, Exception):
                raise refusal(error, options) from error
            raise
        return Client(client, cluster, settings["inFlight"], in_force)


class Client:
    def __init__(self, glide, cluster, in_flight, options):
        self.glide = glide
        self.cluster = cluster
        self.capacity = in_flight
        self.options = options

    async def perform(self, commands):
        if len(commands) == 1:
            return [await self.glide.custom_command(commands[0])]
        batch = ClusterBatch(is_atomic=False) if self.cluster else Batch(is_atomic=False)
        for words in commands:
            batch.custom_command(words)
        return await self.glide.exec(batch, raise_on_error=False)

    def classify(self, error):
        message = str(error)
        if type(error) is RequestError:
            if known := KNOWN_REPLY.fullmatch(message):
                kind, detail = known.groups()
                return "reply", f"{CODES.get(kind, kind)} {detail or ''}".rstrip()
            if other := OTHER_REPLY.fullmatch(message):
                return "reply", " ".join(other.groups())
        text = f"{type(error).__name__}: {message}"
        if isinstance(error, CircuitBreakerError) or NOT_STARTED in message:
            return "refused", text
        if isinstance(error, TimeoutError):
            return "timeout", text
        if isinstance(error, (ConnectionError, ClosingError)):
            return "refused" if NOT_SENT in message and not self.cluster else "lost", text
        return "other", text

    async def close(self):
        await self.glide.close()


def configure(settings, options, cluster):
    if settings["topology"] == "sentinel":
        raise invalid("topology", "Valkey GLIDE does not support Sentinel")
    if settings["topology"] not in ("standalone", "cluster"):
        raise invalid("topology", f"unknown topology {settings['topology']}")
    check_server_name(settings, "Valkey GLIDE")
    kind = GlideClusterClientConfiguration if cluster else GlideClientConfiguration
    advanced = AdvancedGlideClusterClientConfiguration if cluster else AdvancedGlideClientConfiguration
    converters = {
        "advanced_config": nested(advanced),
        "client_circuit_breaker": nested(ClientCircuitBreakerConfiguration),
        "compression": nested(CompressionConfiguration, {"backend": member(CompressionBackend)}),
        "node_discovery_mode": member(NodeDiscoveryMode),
        "periodic_checks": periodic_checks,
        "protocol": member(ProtocolVersion),
        "read_from": member(ReadFrom),
        "reconnect_strategy": nested(BackoffStrategy),
    }
    given = arguments(options, parameters(kind), converters, BY_TARGET)
    defaults = {name: parameter.default for name, parameter in parameters(kind).items()}
    in_force = {name: shown(value) for name, value in (defaults | given).items() if name not in BY_TARGET}
    tls = settings.get("tls")
    if tls:
        check_certificates(tls)
        given.setdefault("advanced_config", advanced()).tls_config = TlsAdvancedConfiguration(
            use_insecure_tls=tls.get("insecure") or None,
            root_pem_cacerts=encoded(tls.get("ca")),
            client_cert_pem=encoded(tls.get("certificate")),
            client_key_pem=encoded(tls.get("key")),
        )
    if settings["password"] is not None or settings["username"] is not None:
        given["credentials"] = ServerCredentials(settings["password"], settings["username"])
    if settings.get("database"):
        given["database_id"] = settings["database"]
    nodes = [NodeAddress(host, port) for host, port in endpoints(settings)]
    return kind(nodes, use_tls=bool(tls), **given), CORE_DEFAULTS | told(flat(in_force))


def nested(kind, converters=None):
    return lambda given, field: kind(**arguments(given, parameters(kind), converters or {}, BY_TARGET, field))


def periodic_checks(given, field):
    """The name of a status, or the arguments of an interval."""
    if isinstance(given, str):
        return member(PeriodicChecksStatus)(given, field)
    return nested(PeriodicChecksManualInterval)(given, field)


def shown(value):
    """An option's value as simple values: objects become maps of their attributes, members of enumerations names."""
    if hasattr(value, "name"):
        return value.name
    if hasattr(value, "__dict__"):
        return {name: shown(part) for name, part in vars(value).items()}
    return value


def told(options):
    """Without the options that are left to the core, as None."""
    return {name: value for name, value in options.items() if value is not None}


def encoded(text):
    return text.encode() if text else None


def refusal(error, options):
    """Why GLIDE did not connect."""
    message = f"{type(error).__name__}: {error}".strip()
    if re.search(r"\b(WRONGPASS|NOAUTH|AuthenticationFailed)\b", message):
        return Refused("login", "password", message)
    if re.search(r"\b(NOPERM|PermissionDenied)\b", message):
        return Refused("login", "username", message)
    if isinstance(error, (ConfigurationError, TypeError, ValueError)):
        return invalid(named(message, options), message)
    return Refused("unreachable", "", message)
