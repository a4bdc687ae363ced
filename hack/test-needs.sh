#!/usr/bin/env bash
# Finds what tests run beside Go. As root it installs or builds what is missing; otherwise it says what that is, and what to do.
#
#   test-needs.sh programs   succeeds if all servers and the browser are there; hack/newer-servers.sh needs no root
#   test-needs.sh assets     prints the folder with kube-apiserver, etcd and kubectl: KUBEBUILDER_ASSETS, or what the lab
#                            has built, or what setup-envtest has downloaded
#   test-needs.sh download   has setup-envtest download them; needs no root
#
# A program is what its variable names, such as REDQUAKE_REDIS_SERVER_8=/opt/redis/bin/redis-server for redis-server-8.
# Without that it is in PATH, or where packages of Debian or hack/newer-servers.sh put it: internal/testing/installed has
# the same rules.
set -euo pipefail
cd "$(dirname "$0")/.."

# PROGRAM SOURCE [VERSION]: what installs it, and what its output of --version contains.
needed='
redis-server        redis-server             v=7.
redis-sentinel      redis-sentinel           v=7.
redis-server-8      hack/newer-servers.sh    v=8.
redis-sentinel-8    hack/newer-servers.sh    v=8.
valkey-server       hack/newer-servers.sh    v=9.
valkey-sentinel     hack/newer-servers.sh    v=9.
prometheus          prometheus
promtool            prometheus
prometheus3         hack/newer-servers.sh    version 3.
promtool3           hack/newer-servers.sh    version 3.
nutcracker          nutcracker
postgres            postgresql
mariadbd            mariadb-server
mariadb-install-db  mariadb-server
chromium            chromium
jq                  jq
'
folders=(/usr/sbin "${XDG_CACHE_HOME:-$HOME/.cache}/redquake/servers/bin" /usr/lib/postgresql/*/bin)
missing= # lines of needed

# variable PROGRAM: the name of its variable.
variable() { tr a-z- A-Z_ <<<"REDQUAKE_$1"; }

# find PROGRAM: prints its path.
find() {
  local own folder
  own=$(variable "$1")
  if [ -n "${!own-}" ]; then
    command -v "${!own}"
    return
  fi
  command -v "$1" && return
  if [ "$1" = chromium ]; then command -v chromium-browser || command -v google-chrome && return; fi
  for folder in "${folders[@]}"; do command -v "$folder/$1" && return; done
  return 1
}

look() {
  local program source version path
  missing=
  while read -r program source version; do
    [ -n "$program" ] || continue
    path=$(find "$program") && [[ -z $version || $(timeout 20 "$path" --version 2>&1) == *"$version"* ]] && continue
    missing+="$program $source $version"$'\n'
  done <<<"$needed"
}

programs() {
  look
  if [ "$(id -u)" = 0 ] && grep -qv 'hack/newer-servers.sh\|^$' <<<"$missing"; then hack/packages.sh; fi
  if grep -q hack/newer-servers.sh <<<"$missing"; then hack/newer-servers.sh || true; fi
  [ -z "$missing" ] || look
  [ -n "$missing" ] || return 0
  {
    echo 'Programs are missing for the tests. Put them into PATH, name their paths by the variables, or install them:'
    printf '  %-19s %-28s %s\n' PROGRAM VARIABLE 'DEBIAN PACKAGE OR SCRIPT'
    while read -r program source version; do
      [ -n "$program" ] || continue
      printf '  %-19s %-28s %s\n' "$program" "$(variable "$program")" "$source${version:+, --version with $version}"
    done <<<"$missing"
    echo 'As root, hack/packages.sh installs all packages.'
  } >&2
  exit 1
}

# The tests are for the lab's minor version.
kubernetes=${LAB_KUBERNETES:-$(sed -nE 's/^\tk8s.io\/kubernetes v(.*)/\1/p' hack/lab/kube/go.mod)}
kubernetes=${kubernetes%.*}.x
envtest=(go run sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1)

download() { "${envtest[@]}" use "$kubernetes"; }

assets() {
  if [ -n "${KUBEBUILDER_ASSETS-}" ]; then
    echo "$KUBEBUILDER_ASSETS"
    return
  fi
  hack/lab/lab assets --built 2>/dev/null && return
  if [ -d "${XDG_DATA_HOME:-$HOME/.local/share}/kubebuilder-envtest" ]; then
    "${envtest[@]}" use --installed-only --print path "$kubernetes" && return
  fi
  if [ "$(id -u)" = 0 ]; then
    hack/lab/lab assets
    return
  fi
  cat >&2 <<END
There are no kube-apiserver, etcd and kubectl for the tests. Do one of these:
  hack/test-needs.sh download                     # downloads them
  hack/lab/lab build                              # compiles them, 10 minutes
  export KUBEBUILDER_ASSETS=/a/folder/with/them
END
  exit 1
}

case ${1-} in
programs | assets | download) "$1" ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2 && exit 2 ;;
esac
