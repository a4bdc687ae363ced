"""Client adapters of Redquake for the Redis libraries of Python; the contract is clients/PROTOCOL.md."""
