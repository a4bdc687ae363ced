#!/usr/bin/env bash
# Kills a Redis and keeps its volume attached to the old node, so that its replacement gets a real Multi-Attach error; shows when it recovers, and
# that the fault is fully reverted. `make demo-multi-attach` runs it. It needs two nodes.
set -euo pipefail
cd "$(dirname "$0")/.."

namespace=redquake-demo
kubectl=${KUBECTL:-hack/lab/kubectl}
k() { "$kubectl" -n "$namespace" "$@"; }
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

COMPONENTS=node-faults hack/demo.sh config/samples/loadtest.yaml config/samples/volumeattachdelay.yaml # a fault on nodes: off by default

say "The cluster's events of the replacement"
k get events --field-selector "involvedObject.uid=$(k get pod redis-0 -o 'jsonpath={.metadata.uid}')" \
  -o 'custom-columns=REASON:.reason,SOURCE:.source.component,MESSAGE:.message' | grep -e REASON -e Scheduled -e Attach

of() { k get redisfault volume-left-behind -o "jsonpath={$1}"; }
# seconds FIELD: a duration of the status, such as 62.041286s or 5.003ms, in seconds
seconds() {
  local figure
  figure=$(of "$1")
  [ -n "$figure" ] || { echo "the demo failed: the fault has no $1" >&2; exit 1; }
  awk -v d="$figure" 'BEGIN {printf "%.2f", d / (d ~ /us$/ ? 1e6 : d ~ /ms$/ ? 1e3 : 1)}'
}
delay=$(of .spec.duration)
recovery=$(seconds .status.impact.recoveryTime.value)
outage=$(seconds .status.impact.outage.value)
late=$(awk -v recovery="$recovery" -v delay="${delay%s}" 'BEGIN {printf "%.1f", recovery - delay}')

say "Recovery"
echo "requested delay $delay, outage $outage s, recovered after $recovery s: $late s for release, detach, attach and start"
case $late in -*) echo "the demo failed: Redis recovered before the volume was released" >&2; exit 1 ;; esac

say "Nothing of the fault is left"
holders=$(k get pods -l redquake.dev/fault=volume-left-behind --no-headers 2>/dev/null | wc -l)
tainted=$("$kubectl" get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.spec.taints[*].key}{"\n"}{end}' | awk '/ redquake[.]dev\/fault( |$)/ {print $1}')
echo "holder pods: $holders; tainted nodes: ${tainted:-none}"
k get pods -o wide
[ "$holders" = 0 ] && [ -z "$tainted" ] || { echo "the demo failed: the fault is not fully reverted" >&2; exit 1; }
