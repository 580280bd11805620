#!/bin/sh
# Redis, two gateways that share their refreshes in it, and HAProxy in front, on this machine. Ctrl-C ends them all.
# The gateways' settings come from the environment or .env, as for one alone.
set -eu
cd "$(dirname "$0")/../.."

LISTEN=${LISTEN:-127.0.0.1:4175}
PORT_A=${PORT_A:-4181}
PORT_B=${PORT_B:-4182}
REDIS_PORT=${REDIS_PORT:-6379}
STATISTICS=${STATISTICS:-127.0.0.1:8404}

running=
# shellcheck disable=SC2086 # a list of process ids
trap 'kill $running 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM

redis-server --port "$REDIS_PORT" --bind 127.0.0.1 --save '' --appendonly no >/dev/null &
running="$running $!"
for port in "$PORT_A" "$PORT_B"; do
  PORT=$port HOST=127.0.0.1 REDIS_URL=redis://127.0.0.1:$REDIS_PORT BUN_CONFIG_MAX_HTTP_REQUESTS=20000 bun src/index.ts &
  running="$running $!"
done
export LISTEN STATISTICS GATEWAY_A="127.0.0.1:$PORT_A" GATEWAY_B="127.0.0.1:$PORT_B"
haproxy -f deploy/two-instances/haproxy.cfg &
running="$running $!"
wait
