#!/usr/bin/env bash
# Regenerates all generated files in a temporary folder and compares; the tree is not changed.
# Every difference is shown with the command that fixes it. `make verify` sets the tools' paths.
set -euo pipefail
cd "$(dirname "$0")/../.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
failed=0

# same COMMAND COMMITTED FRESH: reports a difference, and the command that fixes it.
same() {
  if ! diff -ru "$2" "$3"; then
    printf '\n%s is not up to date. Fix: %s\n\n' "$2" "$1" >&2
    failed=1
  fi
}

"$CONTROLLER_GEN" object:headerFile=hack/boilerplate.go.txt paths=./api/... output:object:dir="$fresh"
same 'make generate' api/v1alpha1/zz_generated.deepcopy.go "$fresh/zz_generated.deepcopy.go"

go run ./hack/tools/metrics > "$fresh/metrics.md"
same 'make generate' docs/metrics.md "$fresh/metrics.md"

"$CONTROLLER_GEN" crd paths=./api/... output:crd:artifacts:config="$fresh/crd"
same 'make manifests' config/crd/bases "$fresh/crd"
go run ./hack/tools/schemas "$fresh/crd" "$fresh/schemas"
same 'make manifests' config/crd/schemas "$fresh/schemas"

"$CONTROLLER_GEN" rbac:roleName=manager-role paths=./controllers/... output:rbac:artifacts:config="$fresh/rights/rbac"
go run ./hack/tools/rights "$fresh/rights"
while read -r file; do
  same 'make manifests' "config/$file" "$fresh/rights/$file"
done < <(cd "$fresh/rights" && find . -name '*.yaml' -printf '%P\n' | sort)

mkdir -p "$fresh/lua"
cp -r config/argocd "$fresh/lua"
go run ./hack/tools/argocd "$fresh/lua"
same 'make manifests' config/argocd/argocd-cm.yaml "$fresh/lua/argocd/argocd-cm.yaml"

cp -r charts "$fresh/charts"
go run ./hack/tools/chart config "$fresh/charts/redquake"
same 'make manifests' charts "$fresh/charts"

hack/tools/api-docs.sh "$fresh/api.md"
same 'make docs' docs/api.md "$fresh/api.md"

cp -r docs "$fresh/docs"
go run ./hack/tools/kinds "$fresh/docs"
same 'make docs' docs/redisfault.md "$fresh/docs/redisfault.md"
same 'make docs' docs/security.md "$fresh/docs/security.md"

for overlay in config/default config/namespaced config/namespaced/cluster config/namespaced/namespace config/samples; do
  if ! "$KUSTOMIZE" build "$overlay" >/dev/null; then
    echo "kustomize cannot build $overlay" >&2
    failed=1
  fi
done

cp -r config "$fresh/with-components"
if ! (cd "$fresh/with-components/default" && "$KUSTOMIZE" edit add component ../components/* && "$KUSTOMIZE" build . >/dev/null); then
  echo "kustomize cannot build config/default with all of config/components" >&2
  failed=1
fi

# An operator for some namespaces has no rights on the cluster but to let go of its own objects, and that by which the admission policies know it.
cp -r config "$fresh/config"
hack/tools/namespaced.sh "$KUSTOMIZE" "$fresh/config" shop,cart > "$fresh/namespaced.yaml"
bound=$(grep -A6 '^kind: ClusterRoleBinding$' "$fresh/namespaced.yaml" | sed -n 's/^  name: //p')
in_namespaces=$(grep -c '^  namespace: \(shop\|cart\)$' "$fresh/namespaced.yaml")
if [ "$(xargs <<<"$bound")" != 'redquake-finalizer-rolebinding redquake-operator-rolebinding' ] || [ "$in_namespaces" -ne 2 ]; then
  printf 'hack/tools/namespaced.sh binds these in the cluster: %s; and has %s objects in two namespaces\n' "$bound" "$in_namespaces" >&2
  failed=1
fi

unformatted=$(git ls-files --cached --others --exclude-standard -- '*.go' | xargs gofmt -s -l)
if [ -n "$unformatted" ]; then
  printf 'gofmt would change these files. Fix: make fmt\n%s\n\n' "$unformatted" >&2
  failed=1
fi

if ! go mod tidy -diff; then
  printf '\ngo.mod is not tidy. Fix: go mod tidy\n\n' >&2
  failed=1
fi

exit "$failed"
