"""What became of a request, as the message that tells the agent."""

import msgpack

# A message has at most 16 MiB; this leaves room for what surrounds an outcome.
LARGEST = (16 << 20) - 1024

# A message is nested at most 16 deep; a reply lies 4 deep in it.
DEEPEST = 12

# Of a pipeline whose commands fail in several ways, the class that leaves most open counts.
GRAVITY = ("lost", "timeout", "other", "reply")


def outcome(request, commands, sent, done, result, classify):
    """Packs an outcome. result is the list of replies, or the exception that the library's call raised.

    A library may put exceptions among the replies of a pipeline. classify tells class and text of an exception.
    """
    number, flags = request
    if isinstance(result, Exception):
        fate, text = classify(result)
    else:
        fate, text = of_replies(result, commands, classify)
    replies = None
    if flags & 1 and fate in ("ok", "nil"):
        try:
            replies = [plain(reply, DEEPEST) for reply in result]
        except ValueError as error:
            fate, text, replies = "other", str(error), None
    packed = msgpack.packb([number, sent, done, fate, text and cut(text, 1000), replies])
    if len(packed) > LARGEST:
        text = f"the replies have {len(packed)} bytes, more than a message can have"
        packed = msgpack.packb([number, sent, done, "other", text, None])
    return packed


def of_replies(replies, commands, classify):
    failures = [classify(reply) for reply in replies if isinstance(reply, Exception)]
    if failures:
        # That one command was not sent says nothing of the others.
        failures = [("lost" if fate == "refused" else fate, text) for fate, text in failures]
        return min(failures, key=lambda failure: GRAVITY.index(failure[0]))
    if commands == 1 and replies[0] is None:
        return "nil", None
    return "ok", None


def plain(value, depth):
    """Makes what a library returns a reply of the protocol: strings are bytes, maps and sets are arrays."""
    if value is None or isinstance(value, (bytes, bool, float)):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return value
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, set, frozenset)):
        if depth == 0:
            raise ValueError("the reply is nested too deep for a message")
        return [plain(part, depth - 1) for part in value]
    return str(value).encode("utf-8", "surrogateescape")


def cut(text, size):
    """Cuts text to so many bytes, between characters."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
