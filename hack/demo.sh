#!/usr/bin/env bash
# Loads a real Redis, breaks it under the load, shows what its clients experienced, and says where the report is. `make demo` runs it, and with other files than
# config/samples/loadtest.yaml and podkill.yaml `make demo-multi-attach` and `make demo-experiment`.
# It boots the lab if it is down (CLUSTER=existing uses the current kubeconfig's cluster) and leaves everything running for inspection.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- config/samples/loadtest.yaml config/samples/podkill.yaml

namespace=redquake-demo
out=build/demo
report=$out/$(basename "${!#}" .yaml)
lab() { hack/lab/lab exec -- "$@"; } # whichever cluster it is
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "Cluster and operator"
[ "${CLUSTER:-lab}" != lab ] || hack/packages.sh demo
make lab-up
if [ "${CLUSTER:-lab}" = existing ]; then
  echo "the cluster pulls ${IMG:-ghcr.io/redquake/redquake:dev} from a registry: push it first (make docker-build IMG=..., docker push), or set IMG"
  make build
else
  make load-image
fi
make deploy

say "A Redis with a persistent volume"
lab kubectl create namespace "$namespace" --dry-run=client -o yaml | lab kubectl apply -f - >/dev/null
lab kubectl label --overwrite namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null
lab kubectl -n "$namespace" delete redisexperiments,redisfaults,redisloadtests --all --wait --timeout=10m >/dev/null
lab kubectl -n "$namespace" apply -k config/samples/redis-standalone
lab kubectl -n "$namespace" rollout status statefulset/redis --timeout=10m

say "redquake run -f $*"
mkdir -p "$out"
rm -f "$report.html"
code=0
lab bin/redquake run -n "$namespace" "${@/#/--file=}" --report "$report.html" || code=$?
lab kubectl -n "$namespace" get redisexperiments,redisloadtests,redisfaults,configmaps -o yaml > "$report.yaml"

say "kubectl -n $namespace get redisexperiments,redisloadtests,redisfaults"
lab kubectl -n "$namespace" get redisexperiments,redisloadtests,redisfaults -l '!redquake.dev/experiment' # without the runs of an experiment

cat <<END

The report:   $report.html
The objects:  $report.yaml
Look around:  hack/lab/kubectl -n $namespace get redisloadtests,redisfaults,pods
Again:        make demo, make demo-multi-attach, make demo-experiment
Tear down:    make lab-down
END

# A verdict is none of the demo: only what could not run, and a report that is missing, are failures of it.
[ "$code" -lt 2 ] && exit
for object in $(lab kubectl -n "$namespace" get redisexperiments,redisloadtests,redisfaults -o name); do
  lab kubectl -n "$namespace" wait --for=condition=Complete --timeout=0 "$object" >/dev/null || { echo "the demo failed: $object did not complete" >&2; exit 1; }
done
[ -s "$report.html" ] || { echo "the demo failed: there is no report" >&2; exit 1; }
