#!/bin/sh
# Starts nginx in its container, with nginx.conf of the folder above, in front of all gateways that run by then.
set -eu

# For trying it: no browser trusts it. A real one is mounted at /etc/letsencrypt, in the place of the tmpfs.
certificate=/etc/letsencrypt/live/api.studio.example
if [ ! -e $certificate ]; then
  mkdir -p $certificate
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout $certificate/privkey.pem \
    -out $certificate/fullchain.pem 2>/dev/null
fi

sh /etc/music-gateway/origins.sh >/run/origins
sed -e 's/server 127.0.0.1:4175 /server gateway:4175 /' -e 's|/etc/music-gateway/origins|/run/origins|' \
  /etc/music-gateway/nginx.conf >/run/gateways.conf
cat >/run/nginx.conf <<'END'
user nginx;
worker_processes 2;
worker_rlimit_nofile 16384;
pid /run/nginx.pid;
error_log stderr;
events {
  worker_connections 16384;
}
http {
  access_log off;
  client_body_temp_path /var/cache/nginx/client_body;
  proxy_temp_path /var/cache/nginx/proxy;
  fastcgi_temp_path /var/cache/nginx/fastcgi;
  uwsgi_temp_path /var/cache/nginx/uwsgi;
  scgi_temp_path /var/cache/nginx/scgi;
  include /run/gateways.conf;
}
END
# The gateway's secrets are in the environment, too, and are none of nginx's business.
exec env -i PATH="$PATH" nginx -c /run/nginx.conf -g 'daemon off;'
