#!/usr/bin/env bash
# All tests in the order of their cost; stops at the first failure. A lab that this run booted is taken down again, also after a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

hack/packages.sh
make unit
make integration

if ! hack/lab/lab status >/dev/null 2>&1; then
  trap 'make lab-down' EXIT
fi
make e2e
