#!/bin/sh
# The server gives up root's rights; whatever else is called keeps them.
set -e
case $1 in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  find . ! -user redis -exec chown redis {} +
  exec gosu redis "$@"
fi
exec "$@"
