"""Reads the settings of the agent's connect, and refuses what a library cannot do."""

import inspect
import os
import re
import ssl

# The types that a map can express, by their names in annotations.
SIMPLE = {"bool", "float", "int", "str"}


class Refused(Exception):
    """These settings lead to no client: why, in the terms of the protocol."""

    def __init__(self, kind, field, message):
        super().__init__(message)
        self.kind = kind
        self.field = field
        self.message = message


def invalid(field, message):
    return Refused("invalid", field, message)


def endpoints(settings):
    """The addresses, as pairs of host and port."""
    pairs = []
    for address in settings["addresses"]:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise invalid("addresses", f"{address} is not host:port")
        pairs.append((host.removeprefix("[").removesuffix("]"), int(port)))
    return pairs


def check_server_name(settings, library):
    """Refuses a server name that is not in the address, for a library that has no option for one."""
    tls = settings["tls"]
    hosts = {host for host, _ in endpoints(settings)}
    if tls and tls.get("serverName") and not tls.get("insecure") and hosts != {tls["serverName"]}:
        raise invalid("tls.serverName", f"{library} checks certificates against the server's address only")


class PemFile:
    """PEM text at a path, for libraries that read keys from files; it lies in memory only."""

    def __init__(self, text):
        self.file = os.fdopen(os.memfd_create("pem"), "w")
        self.file.write(text)
        self.file.flush()
        self.path = f"/proc/self/fd/{self.file.fileno()}"


def check_certificates(tls):
    """Refuses what is not PEM, or a key that is not the certificate's, before a library retries with it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.get("ca"):
        try:
            context.load_verify_locations(cadata=tls["ca"])
        except (ssl.SSLError, ValueError) as error:
            raise invalid("tls.ca", str(error)) from error
    if tls.get("certificate") or tls.get("key"):
        try:
            certificate, key = PemFile(tls.get("certificate") or ""), PemFile(tls.get("key") or "")
            context.load_cert_chain(certificate.path, key.path, password="")
        except (ssl.SSLError, OSError, ValueError) as error:
            raise invalid("tls.certificate", str(error)) from error


def parameters(*functions):
    """The named parameters of the functions together, by name."""
    found = {}
    for function in functions:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
                found.setdefault(parameter.name, parameter)
    return found


def arguments(options, known, converters, by_target=(), path="options"):
    """Makes keyword arguments of options.

    known are the parameters that the library has; converters make objects of what a map can express, by the
    parameter's name; the parameters in by_target come from the other settings.
    """
    made = {}
    for name, value in options.items():
        field = f"{path}.{name}"
        if name in by_target:
            raise invalid(field, f"{name} is set by the target")
        if name not in known:
            raise invalid(field, f"unexpected keyword argument '{name}'")
        if name in converters and value is not None:
            try:
                made[name] = converters[name](value, field)
            except (AttributeError, TypeError, ValueError) as error:
                raise invalid(field, f"{type(error).__name__}: {error}") from error
        else:
            made[name] = of_type(value, known[name], field)
    return made


def member(kind):
    """Converts the name of a member of an enumeration."""

    def convert(name, _):
        if name not in kind.__members__:
            raise ValueError(f"{name!r} is none of {', '.join(kind.__members__)}")
        return kind[name]

    return convert


def types(parameter):
    """The words of the parameter's annotation; the type of its default if it has none."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return {type(parameter.default).__name__}
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return set(re.findall(r"\w+", text))


def of_type(value, parameter, field):
    """Checks value against what the parameter takes, as far as a map can express it."""
    words = types(parameter)
    if isinstance(value, float) and value.is_integer() and "float" not in words:
        value = int(value)
    kind = type(value).__name__
    if value is None:
        fits = not words.isdisjoint({"None", "NoneType", "Optional"})
    else:
        fits = kind in words or (kind == "int" and "float" in words) or ("Literal" in words and value in words)
    if not fits or kind not in SIMPLE | {"NoneType"}:
        raise invalid(field, f"{parameter} does not take {value!r}")
    return value


def named(message, options, path="options"):
    """The field of the option that a library's message names; the options as a whole if it names none."""
    for name in options:
        if re.search(rf"\b{re.escape(name)}\b", message):
            return f"{path}.{name}"
    return path


def flat(options, prefix=""):
    """Options as a flat map of simple values, with dots in the names; other objects are left out."""
    result = {}
    for name, value in options.items():
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{name}.")
        elif value is None or isinstance(value, (bool, int, float, str)):
            result[f"{prefix}{name}"] = value
    return result
