#!/usr/bin/env bash
# Prints a directory with etcd, kube-apiserver and kube-controller-manager for the tests against real Kubernetes
# (the envtest convention: the value for KUBEBUILDER_ASSETS).
#
# KUBEBUILDER_ASSETS wins where it is set. Otherwise, on Debian, etcd is that of Debian 12 and the other two are
# v1.20.2, built from its source package `kubernetes` with its Go 1.19. That version is chosen: CSI migration is
# beta in it and its controllers still carry the in-tree code.
#
# Takes about four minutes on two cores, once: the result is kept in the user's cache directory. Safe to run
# twice at a time. Only the directory goes to stdout, progress to stderr.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$scripts/lib/debian-packages.sh"

version=v1.20.2
programs=(etcd kube-apiserver kube-controller-manager)

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for program in "${programs[@]}"; do
    [ -x "$KUBEBUILDER_ASSETS/$program" ] ||
      die "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which has no program $program: put it there, or unset the variable"
  done
  printf '%s\n' "$KUBEBUILDER_ASSETS"
  exit 0
fi

machine=$(uname -m)
home=$(longshore_cache)/kubernetes-$version-$machine
assets=$home/bin

complete() {
  local program
  for program in "${programs[@]}"; do [ -x "$assets/$program" ] || return 1; done
}
finish() { printf '%s\n' "$assets"; exit 0; }

if complete; then finish; fi
require_debian
with_lock "$home/lock"
if complete; then finish; fi

for tool in make gcc dpkg-source patch perl; do
  command -v "$tool" >/dev/null || die "building Kubernetes needs $tool: apt-get install build-essential"
done

work=$home/work
root=$work/root
rm -rf "$work"
mkdir -p "$work" "$assets"
log=$home/build.log
started=$SECONDS

say "fetching etcd, Go 1.19 and the source package kubernetes (once; kept in $home)"
open_packages "$work/apt" bookworm
unpack_packages "$work/apt" "$root" etcd-server golang-1.19-go golang-1.19-src rsync libpopt0 libxxhash0 \
  golang-github-modern-go-reflect2-dev
install -m 755 "$root/usr/bin/etcd" "$assets/etcd"

(cd "$work" && "${packages_apt[@]}" source --download-only kubernetes >>"$log" 2>&1) ||
  die "the source package kubernetes could not be fetched (see $log)"
compgen -G "$work/kubernetes_*${version#v}*.dsc" >/dev/null ||
  die "the source package kubernetes is not $version: $(cd "$work" && echo kubernetes_*.dsc)"
dpkg-source --no-check -x "$work"/kubernetes_*.dsc "$work/kubernetes" >>"$log" 2>&1 ||
  die "the source package kubernetes could not be unpacked (see $log)"

# The vendored reflect2 1.0.1 reads map internals that Go 1.18 changed: a server built with it crashes on the
# first write of a custom resource. The distribution's own newer one has the remedy.
reflect2=$work/kubernetes/vendor/github.com/modern-go/reflect2
rm -rf "$reflect2"
cp -rL "$root/usr/share/gocode/src/github.com/modern-go/reflect2" "$reflect2"

cat >"$work/version" <<VERSION
KUBE_GIT_COMMIT='faecb196815e248d3ecfb03c680a4507229c2a56'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='$version'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
VERSION

say "building kube-apiserver and kube-controller-manager $version (about four minutes on two cores; log: $log)"
(
  cd "$work/kubernetes"
  export GOROOT=$root/usr/lib/go-1.19 GOPATH= GOFLAGS= GO111MODULE=off CGO_ENABLED=0 GOPROXY=off
  export GOCACHE=$work/go-cache KUBE_GIT_VERSION_FILE=$work/version
  export PATH=$GOROOT/bin:$root/usr/bin:$PATH
  export LD_LIBRARY_PATH=$root/usr/lib/$machine-linux-gnu
  unset MAKEFLAGS MAKELEVEL MFLAGS
  make WHAT="cmd/kube-apiserver cmd/kube-controller-manager"
) >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "the build of Kubernetes $version failed (see $log)"; }

for program in kube-apiserver kube-controller-manager; do
  built=$(find "$work/kubernetes/_output" -type f -name "$program" -perm -u+x | head -n 1)
  [ -n "$built" ] || die "the build left no $program (see $log)"
  # Moved into place under its own name last, so that a directory that looks complete is complete.
  install -m 755 "$built" "$assets/.$program.new"
  mv "$assets/.$program.new" "$assets/$program"
done
chmod -R u+w "$work" && rm -rf "$work"
say "ready after $((SECONDS - started)) s: $("$assets/kube-apiserver" --version), $("$assets/etcd" --version | head -n 1)"
finish
