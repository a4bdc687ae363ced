#!/usr/bin/env bash
# Loads a real Redis, breaks it under the load, and shows what its clients experienced. `make demo` runs it.
# The fault is that of config/samples/podkill.yaml, or of the file named as the argument.
# It boots the lab if it is down (CLUSTER=existing uses the current kubeconfig's cluster) and leaves everything running for inspection.
set -euo pipefail
cd "$(dirname "$0")/.."

namespace=redquake-demo
out=build/demo
file=${1:-config/samples/podkill.yaml}
fault=$(awk '$1 == "name:" {print $2; exit}' "$file")
kubectl=${KUBECTL:-hack/lab/kubectl}
k() { "$kubectl" -n "$namespace" "$@"; }
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
field() { k get "$1" "$2" -o "jsonpath=$3" 2>/dev/null || true; }

# reason KIND NAME: the reason of the condition Complete; done KIND NAME: whether the object has ended
reason() { field "$1" "$2" '{.status.conditions[?(@.type=="Complete")].reason}'; }
ended() { case "$(field "$1" "$2" '{.status.conditions[?(@.type=="Complete")].status},{.status.conditions[?(@.type=="Failed")].status}')" in *True*) return 0 ;; *) return 1 ;; esac; }

say "Cluster and operator"
[ "${CLUSTER:-lab}" != lab ] || hack/packages.sh
make lab-up
if [ "${CLUSTER:-lab}" = existing ]; then
  echo "the cluster pulls ${IMG:-ghcr.io/redquake/redquake:dev} from a registry: push it first (make docker-build IMG=..., docker push), or set IMG"
else
  make load-image
fi
make deploy

say "A Redis with a persistent volume"
"$kubectl" create namespace "$namespace" --dry-run=client -o yaml | "$kubectl" apply -f - >/dev/null
"$kubectl" label --overwrite namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null
k delete redisfaults,redisloadtests --all --wait --timeout=60s >/dev/null
k apply -k config/samples/redis-standalone
k rollout status statefulset/redis --timeout=90s

say "The load (config/samples/loadtest.yaml) and the fault ($file)"
k apply -f config/samples/loadtest.yaml -f "$file"

say "Live: kubectl get redisloadtests,redisfaults"
last=
for _ in $(seq 400); do
  display=$(field redisloadtest checkout-cache '{.status.display.progress}|{.status.display.tps}|{.status.display.p99}|{.status.display.errors}|{.status.display.trend}')
  IFS='|' read -r progress tps p99 errors trend <<< "$display"
  line=$(printf '%-16s %5s  %8s TPS  p99 %-8s %6s errors  %s   fault: %s' \
    "$(reason redisloadtest checkout-cache)" "$progress" "$tps" "$p99" "$errors" "$trend" "$(reason redisfault "$fault")")
  [ "$line" = "$last" ] || printf '%s\n' "$line"
  last=$line
  if ended redisloadtest checkout-cache && ended redisfault "$fault"; then break; fi
  sleep 1
done

mkdir -p "$out"
k get redisloadtest checkout-cache -o json > "$out/redisloadtest.json"
k get redisfault "$fault" -o json > "$out/redisfault.json"

say "kubectl -n $namespace get redisloadtests,redisfaults"
k get redisloadtests,redisfaults

say "What happened, from the moment of the injection"
field redisfault "$fault" '{range .status.timeline[*]}{.offset}{"\t"}{.event}{"\t"}{.object}{"\t"}{.message}{"\n"}{end}' | awk -F'\t' '{printf "  %9.3f s  %-20s %-10s %s\n", $1 / 1e6, $2, $3, $4}'

say "In plain words"
echo "Load:  $(field redisloadtest checkout-cache '{.status.conditions[?(@.type=="Complete")].message}')"
echo "Fault: $(field redisfault "$fault" '{.status.conditions[?(@.type=="Complete")].message}')"
echo "Proof: $(field redisfault "$fault" '{.status.effect}'): $(field redisfault "$fault" '{.status.effectEvidence}')"

cat <<END

The objects lie in $out/redisloadtest.json and $out/redisfault.json; the full record in ConfigMap $(field redisloadtest checkout-cache '{.status.results.configMap}').
Look around:  $kubectl -n $namespace get redisloadtests,redisfaults,pods
              $kubectl -n $namespace describe redisfault $fault
Again:        make demo, make demo-multi-attach
Tear down:    make lab-down
END

for object in redisloadtest/checkout-cache "redisfault/$fault"; do
  if [ "$(field "${object%/*}" "${object#*/}" '{.status.conditions[?(@.type=="Complete")].status}')" != True ]; then
    echo "the demo failed: $object did not complete" >&2
    exit 1
  fi
done
