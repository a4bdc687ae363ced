"""RedisPyAsync: the asyncio clients of redis-py."""

import redis.asyncio
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import AbstractConnection, Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel

from .redis_settings import LIBRARY, VERSION, Target, classify, command, keywords
from .settings import parameters


class Flavour:
    retry = Retry

    @staticmethod
    def parameters(topology):
        if topology == "standalone":
            return parameters(redis.asyncio.Redis.__init__)
        if topology == "sentinel":
            return parameters(Sentinel, ConnectionPool, AbstractConnection, Connection, SSLConnection)
        return parameters(RedisCluster.__init__)


class Driver:
    library = LIBRARY
    version = VERSION
    blocking = False

    @staticmethod
    async def connect(settings):
        target = Target(settings, Flavour)
        client = Client(target, settings["inFlight"])
        try:
            client.redis = client.create()
            if client.cluster:
                await client.redis.initialize()
            await client.redis.execute_command("PING")
            client.options = client.in_force()
        except Exception as error:
            await client.close()
            raise target.refusal(error) from error
        except BaseException:
            await client.close()
            raise
        return client


class Client:
    def __init__(self, target, in_flight):
        self.capacity = in_flight
        self.cluster = target.topology == "cluster"
        self.target = target
        self.sentinel = self.redis = None

    def create(self):
        target = self.target
        if target.topology == "standalone":
            host, port = target.endpoints[0]
            return redis.asyncio.Redis(host=host, port=port, **target.server, **target.given)
        if target.topology == "sentinel":
            self.sentinel = Sentinel(target.endpoints, **target.given)
            return self.sentinel.master_for(target.name, **target.server)
        nodes = [ClusterNode(host, port) for host, port in target.endpoints]
        return RedisCluster(startup_nodes=nodes, **target.server, **target.given)

    def in_force(self):
        if self.cluster:
            return self.target.in_force(self.redis.retry, {})
        pool = self.redis.connection_pool
        connection = pool.connection_class(**pool.connection_kwargs)
        told = {"max_connections": pool.max_connections, "protocol": connection.protocol}
        return self.target.in_force(connection.retry, told)

    async def perform(self, commands):
        calls = [command(words, self.cluster) for words in commands]
        if len(calls) == 1:
            return [await self.redis.execute_command(*calls[0], **keywords(calls[0]))]
        pipeline = self.redis.pipeline() if self.cluster else self.redis.pipeline(transaction=False)
        async with pipeline:
            for arguments in calls:
                pipeline.execute_command(*arguments, **keywords(arguments))
            return await pipeline.execute()

    def classify(self, error):
        return classify(error, self.cluster)

    async def close(self):
        for client in (self.redis, self.sentinel):
            if client:
                await client.aclose()
        if self.cluster and self.redis:
            # aclose() leaves the connections open while a new look at the topology is due.
            await self.redis.nodes_manager.aclose()
            await self.redis.nodes_manager.aclose("startup_nodes")
