#!/usr/bin/env bash
# Generates what is generated (`npm run generate`) and fails when that changes anything: the committed files were
# stale. They are left as generated, ready to be committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generated() {
  find packages -path '*/node_modules' -prune -o -path '*/dist' -prune -o \
    \( -path '*/src/gen/*' -o -path '*/proto/*' \) -type f -print0 | sort -z | xargs -0r sha256sum
}

before=$(generated)
npm run --silent generate
after=$(generated)
[ "$before" = "$after" ] || {
  echo "generated files were stale; they are regenerated now, commit them:"
  diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u
  exit 1
}
