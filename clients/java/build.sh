#!/usr/bin/env bash
# Builds the adapters Lettuce, Jedis and GlideJava: clients/java/build.sh OUT
# makes the executables OUT/Lettuce, OUT/Jedis and OUT/GlideJava, with all they need in OUT/java. Needs Maven 3.8 and a JDK 17 or newer.
# The versions are in pom.xml. Nothing is written into the source tree.
set -euo pipefail

drivers=(Lettuce Jedis GlideJava)

if [ $# -ne 1 ]; then
  echo "usage: $0 OUT" >&2
  exit 1
fi
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

built="$out/java/built"
inputs=$(cd "$source" && find build.sh start.sh pom.xml src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
executables=("${drivers[@]/#/$out/}")
if [ "$(cat "$built" 2>/dev/null)" = "$inputs" ] && ls "${executables[@]}" >/dev/null 2>&1; then
  exit 0
fi

for tool in mvn javac; do
  if ! command -v "$tool" >/dev/null; then
    echo "$0: $tool is missing: Maven 3.8 and a JDK 17 or newer are needed" >&2
    exit 1
  fi
done

rm -rf "$out/java"
mvn --batch-mode --quiet --strict-checksums --file "$source/pom.xml" \
  -DbuildDirectory="$out/java/build" -DlibDirectory="$out/java/lib" package
rm -rf "$out/java/build"

for driver in "${drivers[@]}"; do
  sed "s/@DRIVER@/$driver/g" "$source/start.sh" >"$out/$driver"
  chmod 755 "$out/$driver"
done
echo "$inputs" >"$built"
