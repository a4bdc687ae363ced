#!/usr/bin/env bash
# Writes the module file of another Kubernetes, VERSION.mod with VERSION.sum, with which LAB_KUBERNETES=VERSION builds the lab.
#
#   add.sh VERSION...    such as 1.35.8
#
# Direct requirements only, at the versions that this Kubernetes has itself: with those of ../go.mod, an older one would not compile. `go mod tidy`
# adds the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2; exit 2; }

for version; do
  staging=v0.${version#1.}
  own=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
  {
    printf 'module github.com/redquake/redquake/hack/lab/kube\n\ngo %s\n\nrequire (\n' "$(sed -n 's/^go //p' go.mod)"
    # The first block of ../go.mod has what the sources import.
    sed -n '/^require (/,/^)/s/^\t\([^ ]*\) .*/\1/p;/^)/q' go.mod | while read -r module; do
      case $module in
      k8s.io/kubernetes) echo "	$module v$version" ;;
      k8s.io/*) echo "	$module $staging" ;;
      *) sed -n "s#^\(\t$module v[^ ]*\).*#\1#p" "$own" ;;
      esac
    done
    printf ')\n\nreplace (\n'
    sed -n "s#^\t\(k8s.io/[^ ]*\) => \./staging/.*#\t\1 => \1 $staging#p" "$own"
    echo ')'
  } >"versions/$version.mod"
  rm -f "versions/$version.sum"
  GOFLAGS=-mod=mod go mod tidy -modfile="versions/$version.mod"
done
