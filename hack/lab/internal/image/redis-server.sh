#!/bin/sh
# The official image builds Redis with protected mode off, Debian does not: say so, unless the command line or the
# configuration file decides. Sentinel has it off by itself.
server=/usr/bin/redis-server
case " $* " in *" --sentinel "*|*" --protected-mode "*) exec "$server" "$@" ;; esac
case "${1-}" in
'' | --[a-z]*)
    case "${1-}" in --version|--help|--test-memory|--check-system) exec "$server" "$@" ;; esac
    exec "$server" --protected-mode no "$@" ;;
-*) exec "$server" "$@" ;;
esac
grep -qsi '^[[:space:]]*protected-mode' "$1" && exec "$server" "$@"
config=$1
shift
exec "$server" "$config" --protected-mode no "$@"
