#!/usr/bin/env bash
# Builds the client's package, and writes its tarball to the project's root or to the given folder.
set -euo pipefail
to=${1:-.}
to=$(cd "$to" && pwd)
cd "$(dirname "$0")"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

cp package.json README.md "$build"
../../node_modules/.bin/tsc --outDir "$build/dist"
# A service worker is one file, because not every browser accepts one with imports.
bun build live-audio/live-audio-worker.ts --format=iife --outfile="$build/dist/live-audio/live-audio-worker.js" >/dev/null
cd "$build"
bun pm pack --quiet --destination "$to"
