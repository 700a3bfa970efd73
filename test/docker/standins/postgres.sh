#!/bin/bash
# A volume without a cluster gets one, with the scripts of the folder, before the server listens on the network.
set -e
if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 700 "$PGDATA"
  exec gosu postgres "$0" "$@"
fi
if [ "$1" = postgres ] && [ ! -e "$PGDATA/PG_VERSION" ]; then
  secret=$(mktemp) && printf %s "$POSTGRES_PASSWORD" > "$secret"
  eval "initdb -U postgres --pwfile='$secret' $POSTGRES_INITDB_ARGS"
  rm "$secret"
  printf '\nhost all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -w -o "${*:2} -c listen_addresses=''" start
  for script in /docker-entrypoint-initdb.d/*.sql; do psql -qX -v ON_ERROR_STOP=1 -U postgres -f "$script"; done
  pg_ctl -D "$PGDATA" -w -m fast stop
fi
exec "$@"
