"""What RedisPy and RedisPyAsync share: options of redis-py, its errors, and why it does not connect."""

import ast
import importlib.metadata
import socket
import ssl

import redis.backoff
import redis.cluster
import redis.exceptions
from redis._defaults import DEFAULT_RETRY_BASE, DEFAULT_RETRY_CAP
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    ResponseError,
)
from redis.maint_notifications import MaintNotificationsConfig

from .settings import (
    SIMPLE,
    PemFile,
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
    types,
)

LIBRARY = "redis"
VERSION = importlib.metadata.version(LIBRARY)

BY_TARGET = {
    "connection_class", "connection_pool", "connection_pool_class", "db", "host", "password", "path", "port",
    "ssl", "ssl_ca_certs", "ssl_ca_data", "ssl_ca_path", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname",
    "ssl_keyfile", "ssl_password", "sentinels", "startup_nodes", "unix_socket_path", "url", "username",
}  # fmt: skip

DENIALS = (AuthenticationError, AuthorizationError, NoPermissionError)

# redis-py takes two words of these as the command's name, and finds the key by it in a cluster.
CONTAINERS = {"OBJECT", "SCRIPT", "XGROUP", "XINFO"}


class Target:
    """The settings as keyword arguments of redis-py. flavour names the classes of the synchronous or asyncio side."""

    def __init__(self, settings, flavour):
        self.topology = settings["topology"]
        self.endpoints = endpoints(settings)
        self.name = settings.get("primaryName")
        self.options = settings.get("options") or {}
        self.flavour = flavour
        self.files = []
        if self.topology not in ("standalone", "sentinel", "cluster"):
            raise invalid("topology", f"unknown topology {self.topology}")
        if self.topology == "standalone" and len(self.endpoints) > 1:
            raise invalid("addresses", "redis.Redis takes one address")
        check_server_name(settings, "redis-py")
        self.known = flavour.parameters(self.topology)
        self.converters = {
            "load_balancing_strategy": member(redis.cluster.LoadBalancingStrategy),
            "maint_notifications_config": maintenance,
            "retry": self.retry,
            "retry_on_error": lambda names, _: [getattr(redis.exceptions, name) for name in names],
            "sentinel_kwargs": self.for_sentinels,
            "socket_keepalive_options": keepalive,
            "ssl_min_version": member(ssl.TLSVersion),
        }
        self.given = arguments(self.options, self.known, self.converters, BY_TARGET)
        self.tls = self.encryption(settings.get("tls"))
        self.server = self.tls | login(settings["username"], settings["password"])
        if settings.get("database"):
            self.server["db"] = settings["database"]
        if self.topology == "sentinel":
            # What Sentinel does itself unless it is given sentinel_kwargs.
            inherited = {name: value for name, value in self.given.items() if name.startswith("socket_")}
            mine = self.tls | login(settings["sentinelUsername"], settings["sentinelPassword"])
            self.given["sentinel_kwargs"] = self.given.get("sentinel_kwargs", inherited) | mine

    def encryption(self, tls):
        if not tls:
            return {}
        check_certificates(tls)
        made = {"ssl": True}
        if tls.get("ca"):
            made["ssl_ca_data"] = tls["ca"]
        if tls.get("certificate"):
            self.files = [PemFile(tls["certificate"]), PemFile(tls["key"])]
            made["ssl_certfile"], made["ssl_keyfile"] = (file.path for file in self.files)
        if tls.get("insecure"):
            made |= {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
        return made

    def retry(self, given, field):
        """A Retry of {retries: 3} or {retries: 3, backoff: {ConstantBackoff: {backoff: 0.1}}}."""
        known = parameters(self.flavour.retry)
        made = arguments(given, known, {"backoff": backoff}, {"supported_errors"}, field)
        made.setdefault("backoff", redis.backoff.ExponentialWithJitterBackoff(DEFAULT_RETRY_CAP, DEFAULT_RETRY_BASE))
        return self.flavour.retry(**made)

    def for_sentinels(self, given, field):
        return arguments(given, self.flavour.parameters("standalone"), self.converters, BY_TARGET, field)

    def refusal(self, error):
        """Why the library did not connect."""
        causes = chain(error)
        message = f"{type(error).__name__}: {error}"
        denied = any(isinstance(cause, DENIALS) for cause in causes)
        if passed(error, "discover_master"):
            # Most errors of sentinels are told in the text of another one only.
            if denied or "AuthenticationError" in message:
                return Refused("login", "sentinelPassword", message)
        elif denied:
            return Refused("login", "password", message)
        if any("Cluster mode is not enabled" in str(cause) for cause in causes):
            return invalid("topology", message)
        if "DB index is out of range" in message or "Argument 'db'" in message:
            return invalid("database", message)
        # Sentinel's errors quote all options of a connection; what is wrong with one begins with its name.
        words = str(error).partition(" ")[0] if isinstance(error, redis.exceptions.ConnectionError) else message
        field = named(words, self.options)
        if field != "options":
            return invalid(field, message)
        if isinstance(error, (TypeError, ValueError)) or (
            isinstance(error, ResponseError) and not isinstance(error, ClusterDownError)
        ):
            return invalid("", message)
        return Refused("unreachable", "", message)

    def in_force(self, retry, told):
        """The options after the library's defaults: those given, those the client tells, the defaults of the others."""
        values = {name: known.default for name, known in self.known.items() if not types(known).isdisjoint(SIMPLE)}
        values |= self.given | {"retry": {"retries": retry.get_retries()} | backoff_in_force(retry)} | told
        if not self.tls:
            values = {name: value for name, value in values.items() if not name.startswith("ssl_")}
        return {name: value for name, value in flat(values).items() if name.rpartition(".")[2] not in BY_TARGET}


def login(username, password):
    given = {"username": username, "password": password}
    return {name: value for name, value in given.items() if value is not None}


def keepalive(given, _):
    """Names of the module socket, such as TCP_KEEPIDLE, as their numbers."""
    return {getattr(socket, name): value for name, value in given.items()}


def maintenance(given, field):
    return MaintNotificationsConfig(**arguments(given, parameters(MaintNotificationsConfig), {}, (), field))


def backoff(given, field):
    """A backoff of redis.backoff, by its name alone, or with its arguments: {ConstantBackoff: {backoff: 0.1}}."""
    name, options = (given, {}) if isinstance(given, str) else next(iter(given.items()))
    kind = getattr(redis.backoff, name)
    return kind(**arguments(options, parameters(kind), {}, (), f"{field}.{name}"))


def backoff_in_force(retry):
    """The back-off between retries; redis-py itself does not tell it."""
    strategy = retry._backoff
    shown = {f"backoff.{name[1:]}": value for name, value in vars(strategy).items()}
    return {"backoff": type(strategy).__name__} | shown


def chain(error):
    found = []
    while error and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def command(words, cluster):
    """A command as the arguments of execute_command.

    redis-py reshapes replies by the command's name, True for OK for instance, if that is text: as bytes it leaves
    them as they are. Its cluster clients take text only.
    """
    if not cluster:
        return words
    name, *rest = words
    name = name.decode("ascii").upper()
    if name in CONTAINERS and rest:
        name = f"{name} {rest.pop(0).decode('ascii').upper()}"
    return [name, *rest]


def keywords(arguments):
    """What the reshaping of a reply needs to know, which redis-py's own methods tell: SET ... GET returns a value."""
    if arguments[0] == "SET" and any(word.upper() == b"GET" for word in arguments[3:]):
        return {"get": True}
    return {}


def passed(error, function):
    """Whether an exception has passed through the function of this name."""
    traceback = error.__traceback__
    while traceback:
        if traceback.tb_frame.f_code.co_name == function:
            return True
        traceback = traceback.tb_next
    return False


def classify(error, cluster):
    """Class and text of an exception.

    A client of one server, or of Sentinel, takes a connection from its pool, and connects it, before it sends; it
    retries without the pool. So what the pool raises tells that nothing was sent. A cluster client goes to a pool with
    each attempt, and does not tell what became of the earlier ones.
    """
    text = f"{type(error).__name__}: {error}"
    if not cluster and passed(error, "get_connection"):
        return "refused", text
    if isinstance(error, ResponseError) or (isinstance(error, BusyLoadingError) and error.status_code):
        return "reply", answered(error)
    if isinstance(error, (redis.exceptions.TimeoutError, TimeoutError)):
        return "timeout", text
    # Without any node left, a cluster client raises an error of its own, because of that of a connection.
    lost = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
    if isinstance(error, lost) or isinstance(error.__cause__, lost):
        return "lost", text
    return "other", text


def answered(error):
    """The server's error reply: redis-py cuts codes that it knows off it, and pipelines put words before it."""
    message = str(error)
    _, annotated, rest = message.partition(" of pipeline caused error: ")
    if annotated:
        # asyncio's cluster pipelines quote it, in a tuple.
        message = ast.literal_eval(rest)[0] if rest.startswith("(") and rest.endswith(",)") else rest
    return f"{error.status_code} {message}" if error.status_code else message
