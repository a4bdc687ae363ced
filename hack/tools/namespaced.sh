#!/usr/bin/env bash
# Prints the manifests of an operator with rights in some namespaces only: namespaced.sh KUSTOMIZE FOLDER NAMESPACES COMPONENTS
# FOLDER is a copy of config, whose default installation has the components. `make build/install.yaml NAMESPACES=a,b` calls it.
set -euo pipefail
kustomize=$1 folder=$2/namespaced namespaces=$3 components=$4

sed -i "s/value: my-namespace}/value: \"$namespaces\"}/" "$folder/kustomization.yaml"
"$kustomize" build "$folder/cluster"
echo ---
"$kustomize" build "$folder"
if [[ " $components " = *" node-faults "* ]]; then
  (cd "$folder/roles" && "$kustomize" edit add resource nodeloss.yaml volumeattachdelay.yaml)
fi
for namespace in ${namespaces//,/ }; do
  mkdir -p "$folder/of/$namespace"
  # Only the roles and bindings are of the namespace, not the subjects.
  cat > "$folder/of/$namespace/kustomization.yaml" <<END
resources: [../../roles]
transformers:
- |-
  apiVersion: builtin
  kind: NamespaceTransformer
  metadata: {name: any, namespace: $namespace}
  setRoleBindingSubjects: none
END
  echo ---
  "$kustomize" build "$folder/of/$namespace"
done
