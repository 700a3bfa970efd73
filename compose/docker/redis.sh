#!/bin/sh
# Redis of compose.yaml: the password goes by a file, since every process can read the arguments of another.
set -eu
file=/run/portico-redis.conf
umask 077
printf 'include /etc/portico/redis.conf\nrequirepass %s\ndir /data\n' "$REDISCLI_AUTH" > "$file"
chown redis "$file"
exec docker-entrypoint.sh redis-server "$file"
