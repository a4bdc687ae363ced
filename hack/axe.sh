#!/usr/bin/env bash
# Downloads axe-core, which finds in a page what people with a screen reader or weak eyes cannot use, for the integration tests: into a folder of the
# user's cache. If it is there, no network is used. The registry is that of npm's settings, if npm is installed, or else registry.npmjs.org.
set -euo pipefail

version=4.14.1 sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
folder=${XDG_CACHE_HOME:-$HOME/.cache}/redquake/axe-core-$version
[ ! -e "$folder/axe.min.js" ] || exit 0

registry=https://registry.npmjs.org/
if command -v npm >/dev/null; then registry=$(npm config get registry); fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
curl -fsSL --retry 3 -o "$work/axe.tgz" "${registry%/}/axe-core/-/axe-core-$version.tgz" || {
  echo "axe.sh: failed to download axe-core $version from $registry: repeat it when the registry can be reached, or put axe.min.js into $folder" >&2
  exit 1
}
echo "$sum  $work/axe.tgz" | sha256sum --check --quiet
mkdir -p "$folder"
tar -xzf "$work/axe.tgz" -C "$work" package/axe.min.js package/LICENSE
mv "$work/package/LICENSE" "$work/package/axe.min.js" "$folder"
