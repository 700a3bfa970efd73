#!/bin/sh
exec node /app/compose/docker/reset.mjs
