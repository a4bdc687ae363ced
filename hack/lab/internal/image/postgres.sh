#!/bin/sh
# As the official image does: options alone start the server. Where the data folder is empty, it is made before, with a database POSTGRES_DB that
# POSTGRES_USER owns with POSTGRES_PASSWORD, in which the .sql files of /docker-entrypoint-initdb.d are run.
set -eu
case "${1-}" in '' | -*) set -- postgres "$@" ;; esac
if [ "$1" != postgres ] || [ -s "$PGDATA/PG_VERSION" ]; then exec "$@"; fi

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
: "${POSTGRES_PASSWORD:?must be set: the password of $user}"
trap 'rm -rf "$PGDATA"/*' EXIT # a failure must not leave half a database for the next start
printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
initdb -D "$PGDATA" -U "$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C
rm /tmp/password
echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"

run() { psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 -h /tmp -U "$user" "$@"; }
pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -k /tmp" -w start
if [ "$database" != postgres ]; then echo 'CREATE DATABASE :"name"' | run -d postgres -v name="$database"; fi
for file in /docker-entrypoint-initdb.d/*.sql; do
  if [ -e "$file" ]; then run -d "$database" -f "$file"; fi
done
pg_ctl -D "$PGDATA" -m fast -w stop
trap - EXIT
exec "$@"
