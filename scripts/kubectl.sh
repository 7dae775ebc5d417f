#!/usr/bin/env bash
# kubectl.sh 1.20|1.32: prints the path of a kubectl of that minor version, for the tests that drive the embedded
# API server with real clients.
#
# The machine's own kubectl is taken where it has that version. Otherwise Debian's is unpacked into the user's cache
# directory, from release 12 (1.20) or 13 (1.32); nothing is installed.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$scripts/lib/debian-packages.sh"

case "${1:-}" in
  1.20) suite=bookworm package=kubernetes-client ;;
  1.32) suite=trixie package=kubectl ;;
  *) die "usage: kubectl.sh 1.20|1.32" ;;
esac
wanted=$1

# minor_version PROGRAM: e.g. 1.20, whatever else the program prints.
minor_version() { "$1" version --client 2>/dev/null | sed -n 's/.*v\(1\.[0-9]*\)\..*/\1/p' | head -n 1; }

if own=$(command -v kubectl) && [ "$(minor_version "$own")" = "$wanted" ]; then
  printf '%s\n' "$own"
  exit 0
fi

home=$(longshore_cache)/kubectl-$wanted-$(uname -m)
program=$home/bin/kubectl
if [ ! -x "$program" ]; then
  require_debian
  with_lock "$home/lock"
  if [ ! -x "$program" ]; then
    work=$home/work
    rm -rf "$work"
    mkdir -p "$work" "$home/bin"
    say "fetching kubectl $wanted (once; kept in $home)"
    open_packages "$work/apt" "$suite"
    unpack_packages "$work/apt" "$work/root" "$package/$suite"
    [ "$(minor_version "$work/root/usr/bin/kubectl")" = "$wanted" ] ||
      die "the package $package of $suite is not version $wanted"
    mv "$work/root/usr/bin/kubectl" "$program"
    rm -rf "$work"
  fi
fi
printf '%s\n' "$program"
