"""RedisPy: redis-py's synchronous clients, called from a pool of threads."""

import asyncio

import redis
from redis.cluster import REDIS_ALLOWED_KEYS, ClusterNode, RedisCluster
from redis.connection import AbstractConnection, Connection, ConnectionPool, SSLConnection
from redis.retry import Retry
from redis.sentinel import Sentinel

from .redis_settings import LIBRARY, VERSION, Target, classify, command, keywords
from .settings import parameters

MOST_THREADS = 200


class Flavour:
    retry = Retry

    @staticmethod
    def parameters(topology):
        if topology == "standalone":
            return parameters(redis.Redis.__init__)
        if topology == "sentinel":
            return parameters(Sentinel, ConnectionPool, AbstractConnection, Connection, SSLConnection)
        # RedisCluster takes any keyword, and drops what it does not pass on to its nodes.
        passed_on = parameters(redis.Redis.__init__)
        own = parameters(RedisCluster.__init__)
        return own | {name: passed_on[name] for name in REDIS_ALLOWED_KEYS if name in passed_on and name not in own}


class Driver:
    library = LIBRARY
    version = VERSION
    blocking = True

    @staticmethod
    async def connect(settings):
        target = Target(settings, Flavour)
        attempt = asyncio.get_running_loop().run_in_executor(None, Client, target, settings["inFlight"])
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            # redis-py's attempt cannot be stopped; what comes of it is closed.
            attempt.add_done_callback(lambda late: late.exception() or late.result().close_now())
            raise


class Client:
    def __init__(self, target, in_flight):
        self.capacity = min(in_flight, MOST_THREADS)
        self.cluster = target.topology == "cluster"
        self.target = target
        self.sentinel = self.redis = None
        try:
            self.redis = self.create()
            self.redis.execute_command("PING")
            self.options = self.in_force()
        except Exception as error:
            self.close_now()
            raise target.refusal(error) from error

    def create(self):
        target = self.target
        if target.topology == "standalone":
            host, port = target.endpoints[0]
            return redis.Redis(host=host, port=port, **target.server, **target.given)
        if target.topology == "sentinel":
            self.sentinel = Sentinel(target.endpoints, **target.given)
            return self.sentinel.master_for(target.name, **target.server)
        nodes = [ClusterNode(host, port) for host, port in target.endpoints]
        return RedisCluster(startup_nodes=nodes, **target.server, **target.given)

    def in_force(self):
        if self.cluster:
            pool = self.redis.get_default_node().redis_connection.connection_pool
            return self.target.in_force(self.redis.retry, {"max_connections": pool.max_connections})
        pool = self.redis.connection_pool
        connection = pool.connection_class(**pool.connection_kwargs)
        told = {"max_connections": pool.max_connections, "protocol": connection.protocol}
        return self.target.in_force(connection.retry, told)

    def perform(self, commands):
        calls = [command(words, self.cluster) for words in commands]
        if len(calls) == 1:
            return [self.redis.execute_command(*calls[0], **keywords(calls[0]))]
        with self.redis.pipeline(transaction=False) as pipeline:
            for arguments in calls:
                pipeline.execute_command(*arguments, **keywords(arguments))
            return pipeline.execute()

    def classify(self, error):
        return classify(error, self.cluster)

    async def close(self):
        await asyncio.get_running_loop().run_in_executor(None, self.close_now)

    def close_now(self):
        for client in (self.redis, self.sentinel):
            if client:
                client.close()
