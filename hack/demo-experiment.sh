#!/usr/bin/env bash
# Runs the experiment of config/samples/experiment-benchmark.yaml on a real Redis in the lab, and prints its table. `make demo-experiment` runs it.
# It boots the lab if it is down (CLUSTER=existing uses the current kubeconfig's cluster) and leaves everything for inspection.
set -euo pipefail
cd "$(dirname "$0")/.."

namespace=redquake-demo-experiment
name=fsync
out=build/demo
file=config/samples/experiment-benchmark.yaml
kubectl=${KUBECTL:-hack/lab/kubectl}
k() { "$kubectl" -n "$namespace" "$@"; }
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
field() { k get redisexperiment "$name" -o "jsonpath=$1" 2>/dev/null || true; }

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
k delete redisexperiments,redisfaults,redisloadtests --all --wait --timeout=120s >/dev/null
k apply -k config/samples/redis-standalone
k rollout status statefulset/redis --timeout=90s

say "The experiment ($file)"
began=$(date +%s)
k apply -f "$file"

last=
for _ in $(seq 1200); do
  line=$(field '{.status.conditions[?(@.type=="Complete")].reason} {.status.display.progress}  {.status.display.next}  until {.status.expectedEnd}')
  [ "$line" = "$last" ] || printf '%s\n' "$line"
  last=$line
  case "$(field '{.status.conditions[?(@.type=="Complete")].status},{.status.conditions[?(@.type=="Failed")].status}')" in *True*) break ;; esac
  sleep 1
done
took=$(($(date +%s) - began))

mkdir -p "$out"
k get redisexperiment "$name" -o json > "$out/experiment.json"

say "kubectl -n $namespace get redisexperiments"
k get redisexperiments -o wide

say "Each setting against appendfsync=no of the same test, after $took s"
field '{range .status.comparison[*]}{.cell}{"\t"}{.figure}{"\t"}{.verdict}{"\t"}{.message}{"\n"}{end}' | awk -F'\t' '{printf "%-34s %-12s %-11s %s\n", $1, $2, $3, $4}'
field '{range .status.notes[*]}note: {@}{"\n"}{end}'

cat <<END

The object lies in $out/experiment.json; the figures of all runs in ConfigMap $(field '{.status.results}').
Look around:  $kubectl -n $namespace get redisexperiments,redisloadtests
Tear down:    make lab-down
END

if [ "$(field '{.status.conditions[?(@.type=="Complete")].status}')" != True ]; then
  echo "the demo failed: $(field '{.status.conditions[?(@.type=="Complete")].message}')" >&2
  exit 1
fi
