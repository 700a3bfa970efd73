#!/bin/bash
# Kafka's own program for images makes the configuration of the mounted file and of the variables, and formats the folder.
set -e
run() { java -cp '/opt/kafka/libs/*' -Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml "$@"; }
export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
run kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config \
  --final-configs-dir /opt/kafka/config > /tmp/setup 2>&1 || grep -q 'already formatted' /tmp/setup || { cat /tmp/setup; exit 1; }
exec java $KAFKA_HEAP_OPTS -cp '/opt/kafka/libs/*' -Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml \
  kafka.Kafka /opt/kafka/config/server.properties
