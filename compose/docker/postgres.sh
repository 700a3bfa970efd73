#!/bin/sh
# Postgres of compose.yaml. A volume from earlier takes the passwords of today, before anybody can connect.
set -eu
configuration=/etc/portico/postgresql.conf
# up to version 17 the image kept its data here, from 18 on in a folder that names the version
if [ -e /var/lib/postgresql/PG_VERSION ]; then
  echo "The volume holds data of PostgreSQL $(cat /var/lib/postgresql/PG_VERSION), which PostgreSQL $PG_MAJOR cannot read: see docs/docker.md, 'Volumes of earlier versions'. Nothing was changed." >&2
  exit 1
fi
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/''/g")"; }
if [ -s "$PGDATA/PG_VERSION" ]; then
  printf 'alter role %s password %s;\n' \
    postgres "$(quoted "$POSTGRES_PASSWORD")" portico "$(quoted "$PORTICO_POSTGRES_PASSWORD")" |
    gosu postgres postgres --single -D "$PGDATA" -c config_file="$configuration" postgres > /dev/null
fi
exec docker-entrypoint.sh postgres -c config_file="$configuration" -c 'listen_addresses=*'
