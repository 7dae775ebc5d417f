# Debian packages as an unprivileged download: fetched through the machine's own package sources and unpacked
# into a directory of ours. Sourced, not run.
#
# Nothing is installed and nothing under /etc, /usr or /var is written: apt gets lists, a cache and a sources
# file of its own, derived from the entries that the machine already trusts (no host is named here), so this
# works for an ordinary user and never changes which version of a program the machine itself runs.

# Where everything that Longshore's scripts fetch or build is kept between runs.
longshore_cache() { printf '%s/longshore\n' "${XDG_CACHE_HOME:-$HOME/.cache}"; }

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

require_debian() {
  [ -e /etc/debian_version ] && command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
    die "this helper needs Debian and its apt; elsewhere, set KUBEBUILDER_ASSETS to a directory with the binaries"
}

# The code name of the running release, e.g. bookworm.
debian_codename() { (. /etc/os-release && printf '%s\n' "${VERSION_CODENAME:?}"); }

# Prints "signed-by|uri|components" for each of the machine's own entries of one suite, in either of apt's formats.
debian_entries() {
  local suite=$1
  find /etc/apt/sources.list.d -name '*.sources' -exec awk -v suite="$suite" '
    function flush(  i, n, parts, uris, m, j) {
      n = split(f["suites"], parts, /[ \t]+/); m = split(f["uris"], uris, /[ \t]+/)
      if (tolower(f["enabled"]) != "no" && f["types"] ~ /(^| )deb( |$)/)
        for (i = 1; i <= n; i++) if (parts[i] == suite)
          for (j = 1; j <= m; j++) print f["signed-by"] "|" uris[j] "|" f["components"]
      delete f
    }
    FNR == 1 || /^[ \t]*$/ { flush() }
    /^#/ { next }
    match($0, /^[A-Za-z-]+:/) { k = tolower(substr($0, 1, RLENGTH - 1)); v = substr($0, RLENGTH + 1); sub(/^[ \t]+/, "", v); f[k] = v }
    END { flush() }' {} +
  # sources.list may be absent: find then fails after having read the directory.
  find /etc/apt/sources.list /etc/apt/sources.list.d -name '*.list' -exec awk -v suite="$suite" '
    $1 == "deb" {
      signed = ""; i = 2
      if ($2 ~ /^\[/) { for (; i <= NF; i++) { o = $i; gsub(/[][]/, "", o); if (o ~ /^signed-by=/) signed = substr(o, 11); if ($i ~ /\]$/) { i++; break } } }
      if ($(i + 1) == suite) { c = ""; for (j = i + 2; j <= NF; j++) c = c (c == "" ? "" : " ") $j; print signed "|" $i "|" c }
    }' {} + 2>/dev/null || true
}

# open_packages DIR SUITE: prepares a private apt in DIR that sees binary and source packages of SUITE.
# A suite that the machine does not list is looked for beside the running release, with the same keys.
open_packages() {
  local dir=$1 suite=$2 entries
  entries=$(debian_entries "$suite")
  [ -n "$entries" ] || entries=$(debian_entries "$(debian_codename)")
  [ -n "$entries" ] || die "no package source for $suite in /etc/apt: add one, or set KUBEBUILDER_ASSETS"
  mkdir -p "$dir/lists/partial" "$dir/archives/partial"
  local signed uri components
  while IFS='|' read -r signed uri components; do
    printf 'deb %s%s %s %s\n' "${signed:+[signed-by=$signed] }" "$uri" "$suite" "$components"
    printf 'deb-src %s%s %s %s\n' "${signed:+[signed-by=$signed] }" "$uri" "$suite" "$components"
  done <<<"$entries" | sort -u >"$dir/sources.list"
  packages_apt=(apt-get -q
    -o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir" -o "Dir::Cache::Archives=$dir/archives"
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=3)
  "${packages_apt[@]}" update >"$dir/update.log" 2>&1 ||
    die "reading the package lists of $suite failed (see $dir/update.log)"
}

# unpack_packages DIR ROOT NAME...: downloads packages and unpacks them under ROOT, without their dependencies.
unpack_packages() {
  local dir=$1 root=$2 deb
  shift 2
  mkdir -p "$root" "$dir/debs"
  rm -f "$dir"/debs/*.deb
  (cd "$dir/debs" && "${packages_apt[@]}" download "$@" >"$dir/download.log" 2>&1) ||
    die "fetching $* failed (see $dir/download.log)"
  for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$root"; done
  rm -f "$dir"/debs/*.deb
}

# with_lock FILE: waits until no other run of these scripts holds FILE; released when this shell ends.
with_lock() {
  mkdir -p "$(dirname "$1")"
  exec 9>"$1"
  flock -n 9 || { say "another run is at work on $(dirname "$1"); waiting for it"; flock 9; }
}
