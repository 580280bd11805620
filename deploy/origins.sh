#!/bin/sh
# Prints the origins of ALLOWED_ORIGINS as nginx.conf and haproxy.cfg read them, from the settings in the file $1, or
# without a file from the environment.
set -eu

# As systemd reads them: the last line wins, and spaces around a value do not count.
if [ $# -gt 0 ]; then
  ALLOWED_ORIGINS=$(sed -n 's/^[[:space:]]*ALLOWED_ORIGINS[[:space:]]*=//p' "$1" | tail -n 1)
fi
# nginx takes no origin twice.
printf '%s\n' "$ALLOWED_ORIGINS" | tr -d "'\"[:blank:]" | tr ',' '\n' | sed -n 's/..*/& &;/p' | sort -u
