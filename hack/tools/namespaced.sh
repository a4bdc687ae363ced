#!/usr/bin/env bash
# Prints the manifests of an operator with rights in some namespaces only: namespaced.sh KUSTOMIZE FOLDER NAMESPACES
# FOLDER is a copy of config, whose default installation has the components. `make build/install.yaml NAMESPACES=a,b` calls it.
set -euo pipefail
kustomize=$1 folder=$2/namespaced namespaces=$3

sed -i "s/value: my-namespace}/value: \"$namespaces\"}/" "$folder/kustomization.yaml"
"$kustomize" build "$folder/cluster"
echo ---
"$kustomize" build "$folder"
for namespace in ${namespaces//,/ }; do
  mkdir -p "$folder/of/$namespace"
  # Only the binding is of the namespace, not its subject.
  cat > "$folder/of/$namespace/kustomization.yaml" <<END
resources: [../../namespace]
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
