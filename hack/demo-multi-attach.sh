#!/usr/bin/env bash
# Kills a Redis whose volume stays attached to the old node, so that its replacement meets a genuine Multi-Attach error, and shows how late it
# heals and that nothing of the fault stays. `make demo-multi-attach` runs it. It needs two nodes.
set -euo pipefail
cd "$(dirname "$0")/.."

namespace=redquake-demo
kubectl=${KUBECTL:-hack/lab/kubectl}
k() { "$kubectl" -n "$namespace" "$@"; }
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

hack/demo.sh config/samples/volumeattachdelay.yaml

say "What the cluster itself said of the replacement"
k get events --field-selector "involvedObject.uid=$(k get pod redis-0 -o 'jsonpath={.metadata.uid}')" \
  -o 'custom-columns=REASON:.reason,SOURCE:.source.component,MESSAGE:.message' | grep -e REASON -e Scheduled -e Attach

of() { k get redisfault volume-left-behind -o "jsonpath={$1}"; }
# seconds reads a duration of the API, such as 22.9s, 1m3s or 850ms.
seconds() {
  awk -v text="$1" 'BEGIN {
    unit["h"] = 3600; unit["m"] = 60; unit["s"] = 1; unit["ms"] = 0.001; unit["us"] = 0.000001
    if (text == "") exit 1
    while (match(text, /^[0-9.]+(ms|us|h|m|s)/)) {
      part = substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1)
      name = part; sub(/^[0-9.]+/, "", name); total += part * unit[name]
    }
    if (text != "") exit 1
    printf "%.2f\n", total
  }' || { echo "the demo failed: $2 is \"$1\", which is no duration" >&2; exit 1; }
}
delay=$(seconds "$(of .spec.duration)" delay)
recovery=$(seconds "$(of .status.impact.recoveryTime)" recoveryTime)
late=$(awk -v recovery="$recovery" -v delay="$delay" 'BEGIN {printf "%.1f", recovery - delay}')

say "How late it healed"
echo "asked delay $delay s, outage $(of .status.impact.outage), recovered after $recovery s: $late s for release, detach, attach and start"
case $late in -*) echo "the demo failed: it healed before the volume was let go" >&2; exit 1 ;; esac

say "What is left of the fault: nothing"
holders=$(k get pods -l redquake.dev/fault=volume-left-behind --no-headers 2>/dev/null | wc -l)
closed=$("$kubectl" get nodes -o 'jsonpath={range .items[?(@.spec.unschedulable==true)]}{.metadata.name}{" "}{end}')
echo "holder pods: $holders; nodes that take no pods: ${closed:-none}"
k get pods -o wide
[ "$holders" = 0 ] && [ -z "$closed" ] || { echo "the demo failed: the fault left something behind" >&2; exit 1; }
