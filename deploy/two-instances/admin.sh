#!/bin/sh
# Sends one command to HAProxy's admin socket, such as 'set server gateways/a state drain', and prints the response.
# Only the user that started HAProxy can. ADMIN_SOCKET is as for run.sh.
# From the root folder: Bun loads the bunfig.toml of the current one.
cd /
ADMIN_SOCKET=${ADMIN_SOCKET:-${XDG_RUNTIME_DIR:-/run}/music-gateway-haproxy.sock} exec bun -e '
  await Bun.connect({
    unix: process.env.ADMIN_SOCKET,
    socket: {
      open: (socket) => void socket.write(process.argv[1] + "\n"),
      data: (_, data) => void process.stdout.write(data),
    },
  });' "$1"
