#!/bin/bash
# The server gives up root's rights, its folder made its own.
set -e
if [[ $1 == rabbitmq* ]] && [ "$(id -u)" = 0 ]; then
  [ "$1" != rabbitmq-server ] || find /var/lib/rabbitmq ! -user rabbitmq -exec chown rabbitmq {} +
  exec gosu rabbitmq "$@"
fi
exec "$@"
