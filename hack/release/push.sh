#!/usr/bin/env bash
# Pushes image and chart of build/release to a registry, byte by byte what was built, and prints their names and digests as NAME=VALUE.
#
#   push.sh REGISTRY    such as ghcr.io/redquake; PLAIN_HTTP=yes for one on this machine
#
# oras and helm are in PATH and logged in; `make push-release` calls this.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# = 1 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2 && exit 2; }
registry=$1
plain=()
[ -z "${PLAIN_HTTP-}" ] || plain=(--plain-http)
from=build/release
version=$(jq -er .version "$from/release.json")
built=$(jq -er .image.digest "$from/release.json")
number=${version#v}
image=$registry/redquake
chart=$registry/charts/redquake

oras cp --from-oci-layout ${PLAIN_HTTP:+--to-plain-http} "$from/assets/redquake_${number}_image.tar:$version" "$image:$version" >&2
pushed=$(oras resolve "${plain[@]}" "$image:$version")
[ "$pushed" = "$built" ] || {
  printf 'push.sh: %s is %s in the registry, and %s was built\n' "$image:$version" "$pushed" "$built" >&2
  exit 1
}
helm push "${plain[@]}" "$from/assets/redquake-$number.tgz" "oci://$registry/charts" >&2

# Artifact Hub takes its metadata from a tag of the chart; without an ID it has not been told of the chart.
if grep -q '^repositoryID: ' hack/release/artifacthub-repo.yml; then
  (cd hack/release && oras push "${plain[@]}" "$chart:artifacthub.io" --config /dev/null:application/vnd.cncf.artifacthub.config.v1+yaml \
    artifacthub-repo.yml:application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml >&2)
fi

echo "image=$image"
echo "image-digest=$pushed"
for architecture in $(jq -r '.image.architectures[]' "$from/release.json"); do
  echo "image-digest-$architecture=$(oras resolve "${plain[@]}" --platform "linux/$architecture" "$image@$pushed")"
done
echo "chart=$chart"
echo "chart-digest=$(oras resolve "${plain[@]}" "$chart:$number")"
