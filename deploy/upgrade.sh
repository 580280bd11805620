#!/bin/sh
# Upgrades the gateway of this machine without a gap. The release in the folder $1 is started as music-gateway@a or @b,
# whichever does not run, and gets the new requests when it is healthy; the other one finishes its own and stops.
# If the release does not become healthy, everything stays as it was. README.md beside this file says what it needs.
set -eu

INSTALLED=${INSTALLED:-/opt/music-gateway}
SETTINGS=${SETTINGS:-/etc/music-gateway/settings.env}
# The same in every shell: admin.sh alone would look into XDG_RUNTIME_DIR, which a login sets and systemd does not.
export ADMIN_SOCKET="${ADMIN_SOCKET:-/run/music-gateway-haproxy.sock}"
# How long a release may take to become healthy, and how long it has to stay so, in seconds.
START_SECONDS=${START_SECONDS:-60}
HEALTHY_SECONDS=${HEALTHY_SECONDS:-5}
# How long the old one may finish its requests before systemd stops it, which gives the rest of them 300 seconds.
DRAIN_SECONDS=${DRAIN_SECONDS:-900}

deploy=$(realpath "$(dirname "$0")")
release=$(realpath "${1:?which folder holds the release?}")

fail() {
  echo "$*" >&2
  exit 1
}

# Writes to HAProxy's admin socket, which responds with nothing when it is done.
haproxy() {
  response=$(sh "$deploy/two-instances/admin.sh" "$1")
  [ -z "$response" ] || fail "HAProxy refused '$1': $response"
}

# What HAProxy knows of an instance, by the name of the column. The status is UP, DRAIN (healthy, but gets no new
# requests), DOWN or MAINT.
seen() {
  sh "$deploy/two-instances/admin.sh" 'show stat gateways 4 -1' | awk -F, -v server="$1" -v column="$2" '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) wanted = i }
    $2 == server { print $wanted }'
}

is_healthy() {
  systemctl is-active --quiet "music-gateway@$1" && case $(seen "$1" status) in UP | DRAIN) ;; *) false ;; esac
}

# As systemd reads them: the later file wins, and spaces around a value do not count.
setting() {
  sed -n "s/^[[:space:]]*$1[[:space:]]*=//p" "$SETTINGS" "$(dirname "$SETTINGS")/$2.env" 2>/dev/null |
    tail -n 1 | tr -d "'\"[:space:]"
}

# Whether Redis responds to an instance, by its metrics. Without it, a session that moves to the other instance leaves
# its last refresh behind.
has_redis() {
  host=$(setting METRICS_HOST "$1")
  case $host in *:*) host="[$host]" ;; esac
  # From the root folder: Bun loads the bunfig.toml of the current one.
  (cd / && NO_PROXY='*' no_proxy='*' bun -e '
    const response = await fetch(`http://${process.argv[1]}/metrics`, { signal: AbortSignal.timeout(2000) });
    process.exit(/^music_gateway_redis_up 1$/m.test(await response.text()) ? 0 : 1);
  ' "${host:-127.0.0.1}:$(setting METRICS_PORT "$1")" 2>/dev/null)
}

go_back() {
  trap '' HUP INT TERM
  haproxy "set server gateways/$old state ready"
  haproxy "set server gateways/$new state drain"
  journalctl -u "music-gateway@$new" --since "$begun" -n 20 -o cat >&2 || true
  systemctl stop "music-gateway@$new"
  fail "$1: music-gateway@$old goes on, and music-gateway@$new is stopped"
}

exec 9>"$INSTALLED/.upgrade"
flock -n 9 || fail 'another upgrade is under way'
# Without it the two would send the same refresh token to the upstream, which signs its user out.
{ cat "$SETTINGS" && systemctl cat music-gateway@a; } | grep -Eq '^(Environment=(.* )?)?REDIS_URL(_FILE)?=.' ||
  fail "REDIS_URL is missing in $SETTINGS, and REDIS_URL_FILE in the unit: the two share refreshes there"
[ -f "$release/src/index.ts" ] && [ -d "$release/node_modules" ] || fail "$release holds no installed release"

if systemctl is-active --quiet music-gateway@a; then old=a new=b; else old=b new=a; fi
is_healthy "$old" || fail "music-gateway@$old is not healthy: start one of the two first"
has_redis "$old" ||
  fail "music-gateway@$old has no Redis (its log says why), or its METRICS_PORT in $old.env does not respond"
! systemctl is-active --quiet "music-gateway@$new" || fail 'both run: stop the one that should not'

begun=$(date '+%F %T')
echo "starting $release as music-gateway@$new"
haproxy "set server gateways/$new state drain"
ln -sfn "$release" "$INSTALLED/$new"
trap 'go_back interrupted' HUP INT TERM
systemctl start "music-gateway@$new" || go_back 'it does not start'
waited=0
healthy=0
while [ "$healthy" -lt "$HEALTHY_SECONDS" ]; do
  [ "$waited" -lt "$START_SECONDS" ] || go_back "not healthy with Redis after $START_SECONDS seconds"
  sleep 1
  waited=$((waited + 1))
  if is_healthy "$new" && has_redis "$new" && has_redis "$old"; then healthy=$((healthy + 1)); else healthy=0; fi
done

echo "music-gateway@$new is healthy and gets the new requests"
haproxy "set server gateways/$new state ready"
haproxy "set server gateways/$old state drain"
waited=0
while [ "$(seen "$old" scur)" != 0 ] && [ "$waited" -lt "$DRAIN_SECONDS" ]; do
  is_healthy "$new" || go_back 'not healthy any more'
  sleep 1
  waited=$((waited + 1))
done
trap '' HUP INT TERM

echo "stopping music-gateway@$old, which has $(seen "$old" scur) requests in flight"
systemctl stop "music-gateway@$old"
systemctl disable --quiet "music-gateway@$old"
systemctl enable --quiet "music-gateway@$new"
echo "music-gateway@$new serves $release"
