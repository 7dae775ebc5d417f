#!/usr/bin/env bash
# Every check that needs no test run. All of them run, so that one look shows all findings; fails if any did.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PWD/node_modules/.bin:$PATH
failed=()

check() {
  local name=$1
  shift
  local started=$SECONDS
  if "$@"; then printf 'ok    %s (%d s)\n' "$name" $((SECONDS - started)); else
    printf 'FAIL  %s (%d s)\n' "$name" $((SECONDS - started))
    failed+=("$name")
  fi
}

# dependency-cruiser reports success also when it understood no module at all.
floors() {
  local report
  report=$(depcruise packages/*/src --config .dependency-cruiser.mjs) || { printf '%s\n' "$report"; return 1; }
  grep -Eq '\([1-9][0-9]* modules, [1-9][0-9]* dependencies' <<<"$report" || { echo "no module was read"; return 1; }
}

check "format and lint (biome)" biome check --error-on-warnings
check "floors and cycles (dependency-cruiser)" floors
check "dead code (knip)" knip
check "types, tests included (tsc)" tsc -p tsconfig.tests.json
check "house rules" tsx scripts/house-rules.ts

if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint: %d failed:' ${#failed[@]}
  printf ' %s;' "${failed[@]}"
  echo
  exit 1
fi
echo "lint: all checks passed"
