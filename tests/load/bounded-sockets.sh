#!/usr/bin/env bash
# Runs a command in a network of its own, whose sockets have the bounds of the shipped deployments. Without the right to
# make one, the command runs as it is: the tests under load then say what they lack.
set -euo pipefail
export PATH="$PATH:/usr/sbin"
bounds="$(dirname "$0")/../../deploy/60-music-gateway.conf"
unshare --net true 2>/dev/null || exec "$@"
# The words are for the inner shell.
# shellcheck disable=SC2016
exec unshare --net sh -c 'ip link set lo up && sysctl -qp "$0" && exec "$@"' "$bounds" "$@"
