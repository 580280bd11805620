#!/bin/sh
# Redis, two gateways that share their refreshes in it, and HAProxy with TLS in front, on this machine. Ctrl-C ends all.
# The gateways' settings come from the environment or .env, as for one alone.
set -eu
cd "$(dirname "$0")/../.."

LISTEN=${LISTEN:-127.0.0.1:8443}
PORT_A=${PORT_A:-4181}
PORT_B=${PORT_B:-4182}
METRICS_A=${METRICS_A:-9464}
METRICS_B=${METRICS_B:-9465}
REDIS_PORT=${REDIS_PORT:-6379}
STATISTICS=${STATISTICS:-127.0.0.1:8404}
ADMIN_SOCKET=${ADMIN_SOCKET:-${XDG_RUNTIME_DIR:-/run}/music-gateway-haproxy.sock}

running=
folder=$(mktemp -d)
# shellcheck disable=SC2086 # a list of process ids
trap 'kill $running 2>/dev/null; wait; rm -r "$folder"' EXIT
trap 'exit 0' INT TERM

# For trying it: no browser trusts it by default.
if [ -z "${CERTIFICATE:-}" ]; then
  CERTIFICATE=$folder/certificate.pem
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$folder/key.pem" -out "$CERTIFICATE" 2>/dev/null
  cat "$folder/key.pem" >>"$CERTIFICATE"
fi

redis-server --port "$REDIS_PORT" --bind 127.0.0.1 --save '' --appendonly no >/dev/null &
running="$running $!"

# The port, and the port of the metrics.
start_gateway() {
  PORT=$1 METRICS_PORT=$2 HOST=127.0.0.1 NODE_ENV=production REDIS_URL=redis://127.0.0.1:$REDIS_PORT \
    BUN_CONFIG_MAX_HTTP_REQUESTS=20000 bun src/index.ts &
  running="$running $!"
}
start_gateway "$PORT_A" "$METRICS_A"
start_gateway "$PORT_B" "$METRICS_B"

ORIGINS=$folder/origins
if [ -n "${ALLOWED_ORIGINS:-}" ]; then sh deploy/origins.sh; else sh deploy/origins.sh .env; fi >"$ORIGINS"
export LISTEN CERTIFICATE ORIGINS STATISTICS ADMIN_SOCKET GATEWAY_A="127.0.0.1:$PORT_A" GATEWAY_B="127.0.0.1:$PORT_B"
haproxy -f deploy/two-instances/haproxy.cfg &
running="$running $!"
wait
