#!/usr/bin/env bash
# Runs Redquake with other versions of Kubernetes, Redis and Valkey: build/compat.json, and from it the tables of docs/compatibility.md.
#
#   compat.sh kubernetes VERSION...   with each, such as 1.35.8, the STEPS (all: crds kinds smoke)
#   compat.sh servers [NAME...]       with each, such as redis-7.2 (all that can be had)
#   compat.sh docs                    the tables again
#
# A version that is run again replaces its results; the others stay, in the page also if build/compat.json is gone. crds and kinds need
# kube-apiserver and etcd only, which the lab builds; smoke needs root and boots the lab, and takes it down if it has booted it. It exits with 1 if
# something has failed; build/test/compat-NAME/failures.txt says what.
set -euo pipefail
cd "$(dirname "$0")/.."

results=build/compat.json page=docs/compatibility.md
lab=$PWD/hack/lab/lab
failed=

# What a run of each kind is: a load, a fault beside a load and one with its own, an experiment, a schedule, each on a kube-apiserver with real Redis
# servers; and each kind of fault with no rights in the cluster but its own.
kinds='TestCompleteRun TestPodKill TestFaultWithoutLoad TestExperimentOnPodTemplates TestScheduleOnARealClock TestEachKindWithItsRightsOnly'

# What is run with each server, by column.
on_load='TestLoadTable TestLoadJSON TestCleanRunsLoseNothing TestEveryTestOfBenchmarkAgainstRedis TestRankingAgainstRedis TestRateLimiterAgainstRedis'
on_faults='TestConfigMaxClients TestConfigAppendOnly TestBackgroundSave TestClientKill TestClientPauseOfAll TestClientPauseOfWrites TestHang TestCrashRealServer
  TestFailoverInReplication TestReplicaScaleReplication'
on_sentinel='TestFailoverBySentinel TestSelectPrimaryBySentinels TestCheckUnderSentinels'
on_cluster='TestFailoverInCluster TestReplicaScaleClusterAdd TestCheckOfACluster TestClusterMoved'
packages='./cmd/redquake ./internal/engine/ledger ./internal/engine/workload ./internal/fault/config ./internal/fault/process ./internal/fault/failover
  ./internal/fault/scale ./internal/fault/guard ./internal/redis/track'

# either NAME...: a pattern of tests.
either() { echo "^($(tr -s ' \n' '|' <<<"$*" | sed 's/|$//'))\$"; }

# gotest NAME ARGUMENT...: go test with a summary, into build/test/compat-NAME.
gotest() { hack/tools/gotest.sh "compat-$1" env go test -vet=off -json -tags integration -count=1 "${@:2}"; }

# passed NAME TESTS: how many of the tests, or with "" of all that ran and are no part of another, have passed, as "PASSED ALL".
passed() {
  jq -rs --arg names "$2" '($names | [splits("\\s+")] | map(select(. != ""))) as $wanted
    | [.[] | select(.Test)]
    | (if $wanted == [] then [.[] | select(.Action == "run" and (.Test | contains("/") | not)).Test] else $wanted end | unique) as $all
    | [.[] | select(.Action == "pass" and (.Test | IN($all[]))).Test] | unique | "\(length) \($all | length)"' "build/test/compat-$1/events.json"
}

# keep KIND NAME KEY JSON: puts a value into the results.
keep() {
  local new
  [ -s "$results" ] || echo '{}' >"$results"
  new=$(jq --arg kind "$1" --arg name "$2" --arg key "$3" --argjson value "$4" --arg date "$(date -u +%F)" \
    '.[$kind][$name][$key] = $value | .[$kind][$name].date = $date' "$results")
  echo "$new" >"$results"
}

# counted KIND NAME KEY "PASSED ALL" [SECONDS]: keeps how many tests have passed. A test that was skipped has not.
counted() {
  local passed all ok=false
  read -r passed all <<<"$4"
  if [ "$passed" = "$all" ] && [ "$all" -gt 0 ]; then ok=true; else failed+=" $2:$3"; fi
  keep "$1" "$2" "$3" "{\"passed\": $ok, \"tests\": $all, \"ofThemPassed\": $passed, \"seconds\": ${5:-null}}"
}

kubernetes() {
  local version step assets began
  for version; do
    export LAB_KUBERNETES=$version
    assets=$("$lab" assets)
    [ "$("$assets/kube-apiserver" --version)" = "Kubernetes v$version" ] || {
      echo "compat.sh: $assets has another kube-apiserver than $version" >&2
      exit 1
    }
    keep kubernetes "$version" etcd "\"$("$assets/etcd" --version | sed -n 's/^etcd Version: //p')\""
    for step in ${STEPS:-crds kinds smoke}; do
      began=$SECONDS
      case $step in
      crds)
        KUBEBUILDER_ASSETS=$assets gotest "$version-crds" -timeout 15m ./test/admission || true
        counted kubernetes "$version" crds "$(passed "$version-crds" "")" $((SECONDS - began))
        ;;
      kinds)
        KUBEBUILDER_ASSETS=$assets gotest "$version-kinds" -timeout 20m -parallel 4 -run "$(either $kinds)" ./test/operator || true
        counted kubernetes "$version" kinds "$(passed "$version-kinds" "$kinds")" $((SECONDS - began))
        ;;
      smoke) smoke "$version" ;;
      *)
        echo "compat.sh: no step is called $step" >&2
        exit 2
        ;;
      esac
    done
  done
}

# smoke VERSION: boots the lab with it, unless it is up, and runs make e2e.
smoke() {
  local began=$SECONDS booted='' ok=0 run
  [[ $("$lab" status 2>&1 || true) != *'the lab is down'* ]] || booted=yes
  if make e2e; then ok=1; fi
  # Every node and the API server are of that version, or it was not this one that was tested.
  run=$(hack/lab/kubectl get --raw /version | jq -r .gitVersion; hack/lab/kubectl get nodes -o 'jsonpath={.items[*].status.nodeInfo.kubeletVersion}') || ok=0
  [ "$(tr -s ' \n' '\n' <<<"$run" | sort -u)" = "v$1" ] || { echo "compat.sh: the lab has $(xargs <<<"$run"), not $1" >&2 && ok=0; }
  rm -rf "build/test/compat-$1-smoke"
  [ ! -d build/test/e2e ] || cp -r build/test/e2e "build/test/compat-$1-smoke"
  [ -z "$booted" ] || "$lab" down || ok=0
  counted kubernetes "$1" smoke "$ok 1" $((SECONDS - began))
}

# servers NAME...: a release of redistest, as which a server of another version is started, has its tests.
servers() {
  local name server sentinel release began version column tests assets all
  assets=$(hack/test-needs.sh assets)
  all=$(
    echo redis-7.0 redis-server redis-sentinel redis-7
    echo redis-8 redis-server-8 redis-sentinel-8 redis-8
    echo valkey-9 valkey-server valkey-sentinel valkey-9
    hack/older-servers.sh | sed -E 's/^redis.*/& redis-7/; s/^valkey.*/& valkey-9/'
  )
  for name in "${@:-}"; do
    [ -z "$name" ] || grep -q "^$name " <<<"$all" || {
      echo "compat.sh: there is no server $name; there are $(cut -d ' ' -f 1 <<<"$all" | xargs)" >&2
      exit 1
    }
  done
  while read -r name server sentinel release <&3; do
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    began=$SECONDS
    version=$(PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/redquake/servers/bin "$server" --version | sed -nE 's/.* v=([0-9.]+).*/\1/p')
    [ -n "$version" ] || { echo "compat.sh: $server of $name does not run" >&2 && exit 1; }
    (
      case $name in # the others are found by their names
      redis-6.* | redis-7.[24]) export REDQUAKE_REDIS_SERVER=$server REDQUAKE_REDIS_SENTINEL=$sentinel ;;
      valkey-8) export REDQUAKE_VALKEY_SERVER=$server REDQUAKE_VALKEY_SENTINEL=$sentinel ;;
      esac
      KUBEBUILDER_ASSETS=$assets gotest "$name" -timeout 20m -p 2 -parallel 4 \
        -run "$(either $on_load $on_faults $on_sentinel $on_cluster)/^$release\$" $packages
    ) || true
    keep servers "$name" version "\"$version\""
    keep servers "$name" seconds $((SECONDS - began))
    for column in load faults sentinel cluster; do
      tests=on_$column
      counted servers "$name" "$column" "$(passed "$name" "$(sed -E "s#[^ ]+#&/$release#g" <<<"${!tests}")")"
    done
  done 3<<<"$all"
}
# part NAME HEAD: the lines of a table between its markers, from standard input and, for other versions, from the page.
part() {
  local name=$1 rows old
  rows=$(cat)
  old=$(sed -n "/^<!-- compat, $name: begin/,/^<!-- compat, $name: end/p" "$page" | grep -E '^\| (Redis|Valkey)?[ 0-9.]+ \|' || true)
  rows=$({ echo "$rows"; echo "$old"; } | { grep . || true; } | sort -t '|' -k 2,2 -V -s -u)
  TABLE=$2${rows:+$'\n'$rows} awk -v name="$name" '
    $0 ~ "^<!-- compat, " name ": begin" {print; print ENVIRON["TABLE"]; inside = 1}
    $0 ~ "^<!-- compat, " name ": end" {inside = 0}
    !inside {print}' "$page" >"$page.new"
  mv "$page.new" "$page"
}

docs() {
  local cell='def cell: if . == null then "not run" elif .passed then "yes" else "**no**, \(.ofThemPassed) of \(.tests) tests" end;'
  [ -s "$results" ] || { echo "compat.sh: there is no $results yet" >&2 && exit 1; }
  jq -r "$cell"' .kubernetes // {} | to_entries[] | .value as $v
    | "| \(.key) | \($v.etcd) | \($v.crds | cell) | \($v.kinds | cell) | \($v.smoke | cell) | \([$v.crds, $v.kinds, $v.smoke | .seconds // 0] | add / 60 | ceil) | \($v.date) |"' \
    "$results" | part kubernetes '| Kubernetes | etcd | CRDs and policies accepted | a run of each kind | smoke test on real kubelets | minutes | run on |
| --- | --- | --- | --- | --- | --- | --- |'
  jq -r "$cell"' .servers // {} | to_entries[] | .value as $v | (.key | if startswith("redis") then "Redis" else "Valkey" end) as $product
    | "| \($product) \($v.version) | \($v.load | cell) | \($v.faults | cell) | \($v.sentinel | cell) | \($v.cluster | cell) | \($v.date) |"' \
    "$results" | part servers '| server | loads | faults | Sentinel | Cluster | run on |
| --- | --- | --- | --- | --- | --- |'
}

mkdir -p build
case ${1-} in
kubernetes | servers)
  "$@"
  docs
  [ -z "$failed" ] || { echo "compat.sh: failed:$failed" >&2 && exit 1; }
  ;;
docs) docs ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2 && exit 2 ;;
esac
