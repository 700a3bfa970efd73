#!/bin/sh
exec node --disable-warning=TimeoutNegativeWarning /app/compose/docker/reset.mjs
