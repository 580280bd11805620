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
cd "$build"
bun pm pack --quiet --destination "$to"
