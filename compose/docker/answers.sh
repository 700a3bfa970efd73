#!/bin/bash
# Whether a broker answers in its own protocol: answers.sh kafka|rabbitmq PORT. The brokers' own tools start a virtual
# machine each time, which costs more than the broker does.
case $1 in
  # a request for the API versions (key 18, version 0); the answer begins with its length and the request's number
  kafka) hello='\0\0\0\12\0\22\0\0\0\0\0\52\377\377' answer='^........0000002a' ;;
  # the header of AMQP 0-9-1; the answer is a method frame (1) on channel 0
  rabbitmq) hello='AMQP\0\0\11\1' answer='^010000' ;;
esac
exec 3<> "/dev/tcp/127.0.0.1/$2" || exit 1
printf "$hello" >&3
head -c 8 <&3 | od -An -tx1 | tr -d ' \n' | grep -q "$answer"
