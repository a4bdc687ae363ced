"""Runs one session of an adapter, from the agent's socket to the end of the process."""

import asyncio
import importlib
import logging
import os
import select
import signal
import sys
import threading
import time

from .session import Session

DRIVERS = {"RedisPy": "redis_py", "RedisPyAsync": "redis_py_async", "GlidePython": "glide_python"}

# The agent may start to listen after the adapter has started.
DIAL_EVERY, DIAL_FOR = 0.1, 300

# The protocol gives 5 s from the end of the connection to the end of the process.
CLOSE_WITHIN, EXIT_WITHIN = 3, 4

# So many lines of the library's logs reach standard error in a second.
LINES = 5


def main(*arguments):
    if len(arguments) != 2 or arguments[0] not in DRIVERS:
        sys.exit(f"usage: {'|'.join(DRIVERS)} SOCKET")
    name, path = arguments
    # The first process of a container ignores the signal that ends it, unless it has a handler.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    bound_logs()
    driver = importlib.import_module("." + DRIVERS[name], __package__).Driver
    asyncio.run(run(name, driver, path))


def stop(status, line=""):
    """Ends the process at once: the interpreter would wait for threads that wait for the library."""
    if line:
        print(line, file=sys.stderr)
    sys.stderr.flush()
    os._exit(status)


async def run(name, driver, path):
    """Ends the process itself, as asyncio.run() would wait for what is in flight."""
    try:
        reader, writer = await dial(path)
        connection = writer.get_extra_info("socket")
        threading.Thread(target=stop_after_agent, args=(connection.fileno(),), daemon=True).start()
        session = Session(name, driver, reader, writer)
        await session.run()
    except Exception as error:
        stop(1, f"{name}: {type(error).__name__}: {error}")
    try:
        await asyncio.wait_for(session.close(), CLOSE_WITHIN)
    except Exception as error:  # The end must not depend on the library's.
        logging.warning("close: %r", error)
    stop(0)


async def dial(path):
    until = time.monotonic() + DIAL_FOR
    while True:
        try:
            return await asyncio.open_unix_connection(path)
        except OSError:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(DIAL_EVERY)


def stop_after_agent(descriptor):
    """Ends the process with the agent's connection, even if the library blocks the event loop."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    poll.poll()
    time.sleep(EXIT_WITHIN)
    stop(0)


def bound_logs():
    """Sends standard output and Python's logs to standard error, a few lines a second.

    GLIDE logs to standard output, up to a line for each request that fails.
    """
    reading, writing = os.pipe()
    os.dup2(writing, sys.stdout.fileno())
    os.close(writing)
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(name)s: %(message)s")
    threading.Thread(target=forward_logs, args=(reading,), daemon=True).start()


def forward_logs(descriptor):
    second = lines = 0
    with open(descriptor, encoding="utf-8", errors="replace") as logs:
        for line in logs:
            if int(time.monotonic()) != second:
                if lines > LINES:
                    print(f"({lines - LINES} more lines)", file=sys.stderr)
                second, lines = int(time.monotonic()), 0
            lines += 1
            if lines <= LINES:
                sys.stderr.write(line)
                sys.stderr.flush()
