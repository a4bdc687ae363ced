#!/bin/sh
# As the official image does: options or a configuration file alone mean redis-server.
set -e
case "${1-}" in -* | *.conf) set -- redis-server "$@" ;; esac
exec "$@"
