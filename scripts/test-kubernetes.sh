#!/usr/bin/env bash
# Runs the tests against real Kubernetes; arguments go to vitest. The binaries are those in KUBEBUILDER_ASSETS,
# or on Debian those that kubernetes-assets.sh obtains.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
KUBEBUILDER_ASSETS=$(scripts/kubernetes-assets.sh)
export KUBEBUILDER_ASSETS LONGSHORE_KUBERNETES=1
exec node_modules/.bin/vitest run --project kubernetes "$@"
