"""The conversation with the agent, in the order of clients/PROTOCOL.md."""

import asyncio
import collections
import gc
import os
import platform
import resource
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import msgpack

from .outcome import LARGEST, cut, outcome
from .settings import Refused

VERSION = 1
LONGEST = 16 << 20

# The answer to connect is due within a minute; libraries try longer where a server is silent.
CONNECT_WITHIN = 50


class ProtocolError(Exception):
    """The agent sent what the protocol does not allow."""


class Session:
    """A driver is a class with the attributes library, version and blocking, and

    - async connect(settings), which returns a client or raises Refused, and leaves nothing open if it fails.

    A client has the attributes capacity and options, and

    - perform(commands), a coroutine unless the driver is blocking, which returns the list of replies;
    - classify(error), which returns class and text of an exception raised by perform, or among its replies;
    - async close().
    """

    def __init__(self, name, driver, reader, writer):
        self.name = name
        self.driver = driver
        self.reader = reader
        self.writer = writer
        self.loop = asyncio.get_running_loop()
        self.client = None
        self.connecting = None
        self.threads = None
        self.tasks = set()
        self.ended = collections.deque()
        self.flushing = False

    async def run(self):
        runtime = f"{platform.python_implementation()} {platform.python_version()}"
        self.send(["hello", VERSION, self.name, self.driver.library, self.driver.version, runtime])
        while (message := await self.receive()) is not None:
            try:
                self.handle(*message[:2])
            except (TypeError, ValueError, KeyError) as error:
                raise ProtocolError(f"malformed message of the agent: {error!r}") from error

    async def close(self):
        if self.connecting:
            self.connecting.cancel()
        if self.client:
            await self.client.close()

    async def receive(self):
        """Returns the next message; None when the agent has closed the connection."""
        try:
            (length,) = struct.unpack(">I", await self.reader.readexactly(4))
            if length > LONGEST:
                raise ProtocolError(f"a message of {length} bytes")
            message = msgpack.unpackb(await self.reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        except (ValueError, msgpack.UnpackException) as error:
            raise ProtocolError(f"a message that is not MessagePack: {error!r}") from error
        if not isinstance(message, list) or len(message) < 2:
            raise ProtocolError("a message that is no array of a name and its fields")
        return message

    def send(self, message):
        self.write([msgpack.packb(message)])

    def write(self, parts):
        self.writer.writelines([struct.pack(">I", sum(map(len, parts))), *parts])

    def handle(self, name, content):
        if name == "ping":
            self.send(["pong", content, time.monotonic_ns(), *used()])
        elif name == "requests" and self.client:
            for number, flags, commands in (request[:3] for request in content):
                self.start((number, flags), commands)
        elif name == "connect" and not self.client and not self.connecting:
            self.connecting = self.loop.create_task(self.connect(content))
        else:
            raise ProtocolError(f"message {name!r} is unknown or out of turn")

    async def connect(self, settings):
        refused = None
        try:
            client = await asyncio.wait_for(self.driver.connect(settings), CONNECT_WITHIN)
        except asyncio.TimeoutError:
            refused = "unreachable", "", f"no connection within {CONNECT_WITHIN} s"
        except Refused as error:
            refused = error.kind, error.field, error.message
        except Exception as error:  # Nothing says that this can pass.
            refused = "invalid", "", f"{type(error).__name__}: {error}"
        self.connecting = None
        if refused:
            # Connections that the library left in reference cycles are closed as these are collected.
            gc.collect()
            kind, field, message = refused
            self.send(["refused", kind, cut(field, 128), cut(message, 1000)])
            return
        self.client = client
        if self.driver.blocking:
            self.threads = ThreadPoolExecutor(client.capacity, "request")
        self.send(["ready", client.capacity, short(client.options)])

    def start(self, request, commands):
        if self.threads:
            self.threads.submit(self.perform_in_thread, request, commands)
            return
        task = self.loop.create_task(self.perform(request, commands))
        # The event loop itself holds tasks only weakly.
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def perform(self, request, commands):
        sent = time.monotonic_ns()
        try:
            result = await self.client.perform(commands)
        except Exception as error:
            result = error
        self.end(request, commands, sent, time.monotonic_ns(), result)

    def perform_in_thread(self, request, commands):
        sent = time.monotonic_ns()
        try:
            result = self.client.perform(commands)
        except Exception as error:
            result = error
        self.end(request, commands, sent, time.monotonic_ns(), result)

    def end(self, request, commands, sent, done, result):
        self.ended.append(outcome(request, len(commands), sent, done, result, self.client.classify))
        # flush lowers the flag before it empties the queue, so no outcome stays behind.
        if not self.flushing:
            self.flushing = True
            self.loop.call_soon_threadsafe(self.flush)

    def flush(self):
        """Sends what has ended since the event loop's last turn."""
        self.flushing = False
        batch, size = [], 0
        while self.ended:
            packed = self.ended.popleft()
            if size + len(packed) > LARGEST:
                self.send_outcomes(batch)
                batch, size = [], 0
            batch.append(packed)
            size += len(packed)
        if batch:
            self.send_outcomes(batch)

    def send_outcomes(self, batch):
        packer = msgpack.Packer()
        head = packer.pack_array_header(2) + packer.pack("outcomes") + packer.pack_array_header(len(batch))
        self.write([head, *batch])


def used():
    """The CPU time in nanoseconds and the resident memory in bytes of this process; it starts no others."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[1])
    return int((usage.ru_utime + usage.ru_stime) * 1e9), pages * os.sysconf("SC_PAGE_SIZE")


def short(options):
    """At most 200 options, of at most 256 bytes each."""
    kept = sorted(options.items())[:200]
    return {cut(name, 100): cut(value, 150) if isinstance(value, str) else value for name, value in kept}
