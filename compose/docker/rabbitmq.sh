#!/bin/sh
# RabbitMQ of compose.yaml: its user comes from definitions that every start loads, so a volume from earlier takes the
# password of today.
set -eu
file=/etc/rabbitmq/portico-definitions.json
umask 077
cat > "$file" << END
{"users":[{"name":"portico","password":"$PORTICO_RABBITMQ_PASSWORD","tags":"administrator"}],"vhosts":[{"name":"/"}],
"permissions":[{"user":"portico","vhost":"/","configure":".*","write":".*","read":".*"}]}
END
printf 'load_definitions = %s\n' "$file" > /etc/rabbitmq/conf.d/30-portico-user.conf
chown rabbitmq "$file" /etc/rabbitmq/conf.d/30-portico-user.conf
exec docker-entrypoint.sh rabbitmq-server
