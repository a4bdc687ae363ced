#!/bin/sh
# As the official image does: options alone start the server. Where the data folder is empty, it is made before, with a database MARIADB_DATABASE
# that MARIADB_USER may use with MARIADB_PASSWORD, in which the .sql files of /docker-entrypoint-initdb.d are run. root may log in from outside the
# container with MARIADB_ROOT_PASSWORD if that is set.
set -eu
data=/var/lib/mysql
case "${1-}" in '' | -*) set -- mariadbd "$@" ;; esac
[ "$1" = mariadbd ] || exec "$@"
shift
set -- mariadbd --no-defaults --datadir="$data" "$@"
if [ -d "$data/mysql" ]; then exec "$@"; fi

database=${MARIADB_DATABASE:-}
user=${MARIADB_USER:-}
trap 'rm -rf "$data"/*' EXIT # a failure must not leave half a database for the next start
mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve --force
"$@" --skip-networking --socket=/tmp/init.sock &
server=$!
root="--no-defaults --socket=/tmp/init.sock --user=root"
tries=0
until mariadb-admin $root --silent ping; do
  tries=$((tries + 1))
  if [ $tries = 600 ] || ! kill -0 $server; then exit 1; fi
  sleep 0.1
done
{
  if [ "$database" ]; then echo "CREATE DATABASE \`$database\`;"; fi
  if [ "$user" ]; then
    echo "CREATE USER \`$user\`@'%' IDENTIFIED BY '${MARIADB_PASSWORD:?must be set: the password of $user}';"
    if [ "$database" ]; then echo "GRANT ALL ON \`$database\`.* TO \`$user\`@'%';"; fi
  fi
  if [ "${MARIADB_ROOT_PASSWORD:-}" ]; then
    echo "CREATE USER root@'%' IDENTIFIED BY '$MARIADB_ROOT_PASSWORD'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
  fi
} | mariadb $root
for file in /docker-entrypoint-initdb.d/*.sql; do
  if [ -e "$file" ]; then mariadb $root $database <"$file"; fi
done
kill $server
wait $server
trap - EXIT
exec "$@"
