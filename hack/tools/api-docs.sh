#!/usr/bin/env bash
# Usage: api-docs.sh FILE: writes docs/api.md, the reference of every field, with $CRD_REF_DOCS. Lines of a comment that are one sentence become
# one line: the tool makes a line break of each end of a line.
set -euo pipefail
cd "$(dirname "$0")/../.."

"$CRD_REF_DOCS" --log-level=WARN --source-path=api --config=hack/tools/crd-ref-docs.yaml --renderer=markdown --max-depth=20 --output-path="$1"
sed -Ei ':again; s#([^.:;>| ])<br />([^<| ])#\1 \2#g; t again' "$1"
