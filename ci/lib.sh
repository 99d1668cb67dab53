# Shared by ci/setup, ci/suite and ci/test: where things are, what must be installed, how to say what is missing.
# Sourced, never run. Everything here is idempotent and costs milliseconds when there is nothing to do.
# shellcheck shell=bash
# shellcheck disable=SC2034  # used by the scripts that source this

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
build="$root/build/release"
ulpscope="$build/bin/ulpscope"
venv="$root/.venv"
full_speed="-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG"

# The exit code of "usage or environment wrong", the same as the program's own.
readonly kExitEnvironment=4

# Debian 12 and Ubuntu 24.04 have all of these under these names.
readonly kPackages=(
  build-essential cmake git ninja-build pkg-config
  libboost-dev libcli11-dev libexpected-dev libfmt-dev
  libopenblas-dev libpugixml-dev libsqlite3-dev libyaml-cpp-dev nlohmann-json3-dev zlib1g-dev
)
# The tests' own: a first matrix does without (ULPSCOPE_TESTS=OFF).
readonly kTestPackages=(libgmock-dev libgtest-dev libmpfr-dev libgmp-dev)
# Backends that are left out where these cannot be had, and what makes the second build of anything quick.
readonly kOptionalPackages=(ccache libblis-serial-dev libdnnl-dev)
# What tests hold junit.xml, the manual page and completion in zsh against, and what the legs of ci/test over sources run. Tests are no
# good without: a test that finds its tool missing names one of these, and fails where ci/test runs it.
readonly kTestTools=(clang-format-14 groff libxml2-utils shellcheck zsh)
# Of the legs of ci/test --all, which leave out what needs them where they cannot be had: Slurm's daemons (the packages start nothing by
# themselves), a browser, the second compiler with libFuzzer.
readonly kServicePackages=(slurmctld slurmd slurm-client)
readonly kBrowserPackages=(chromium)
readonly kClangPackages=(clang-14 libclang-rt-14-dev)
# ci/bench besides.
readonly kBenchPackages=(libbenchmark-dev)
# The Python backends besides: venv for pip's sake, dev because torch.compile compiles against Python.h.
readonly kPythonPackages=(python3 python3-dev python3-venv)

say() { printf '%s\n' "$*" >&2; }

# stop TEXT: the environment or the command line is wrong.
stop() {
  say "$*"
  exit "$kExitEnvironment"
}

# need_packages NAME...: installs the missing ones, or prints the one line that does and stops.
need_packages() {
  command -v dpkg-query >/dev/null || stop "ulpscope is set up for Debian 12 and Ubuntu 24.04; this machine has no dpkg. \
Install the equivalents of: $*"
  local installed missing=() name
  installed="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)"
  for name in "$@"; do
    grep -qx "installed $name" <<<"$installed" || missing+=("$name")
  done
  ((${#missing[@]} == 0)) && return
  local as_root=()
  if [[ "$(id -u)" != 0 ]]; then
    if ! sudo -n true 2>/dev/null; then
      say "Packages are missing, and this is not root. Paste this line, then call again:"
      printf '%s\n' "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
      exit "$kExitEnvironment"
    fi
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local log="$root/build/apt.log"
  mkdir -p "$root/build"
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    stop "apt-get failed (the whole of it: $log)"
  fi
}

# want_packages NAME...: the same for what the machine may do without: nothing here stops.
want_packages() {
  (need_packages "$@" >&2) || say "going on without them: what needs them is left out"
}

# base_python: the interpreter that the virtual environments are made with. The system's own comes first, because its
# headers are the ones that python3-dev brings.
base_python() {
  local candidate
  for candidate in "${ULPSCOPE_BASE_PYTHON:-}" /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
    if ! command -v "$candidate" >/dev/null; then
      continue
    fi
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  stop "no Python 3.11 to 3.13 found (the range that torch 2.13.0 and jax 0.10.2 share); name one in ULPSCOPE_BASE_PYTHON"
}

# requirements_of NAME: the file that lists what .venv-NAME holds. That of PACKAGE==VERSION is the pinned one with another version of
# that one framework, so that nothing else differs between two columns; and it is complete, for --without-nvidia.
requirements_of() {
  local name="$1" package version file
  if [[ "$name" != *==* ]]; then
    printf '%s\n' "$root/ci/requirements-$name.txt"
    return
  fi
  package="${name%%==*}" version="${name##*==}"
  file="$root/build/requirements-$package-$version.txt"
  if [[ "$version" == newest ]]; then
    version="$("$venv/bin/python" -m pip index versions "$package" --disable-pip-version-check 2>/dev/null |
      sed -n "1s/^$package (\([0-9A-Za-z.+]*\)).*/\1/p")"
    [[ -n "$version" ]] || stop "pip finds no version of $package"
  fi
  mkdir -p "$root/build"
  {
    if [[ "$package" == torch ]]; then
      printf 'torch==%s\n' "$version"
      grep -vE '^(#|torch|numpy|jax)' "$root/ci/requirements-torch-xla.txt"
    else
      printf 'jax==%s\njaxlib==%s\n' "$version" "$version"
    fi
    grep -vE '^(#|torch|jax)' "$root/ci/requirements.txt"
  } >"$file"
  printf '%s\n' "$file"
}

# need_venv DIR REQUIREMENTS [without-nvidia]: a virtual environment that holds exactly these requirements. Its stamp is
# written last, and whatever has no matching stamp is built again from nothing: a pip that was killed leaves half an
# environment. without-nvidia: the requirements alone, with stand-ins for NVIDIA's libraries (ci/stub_nvidia.py).
need_venv() {
  local dir="$1" requirements="$2" nvidia="${3:-}" python want options=()
  python="$(base_python)"
  want="$({ "$python" -V && cat "$requirements" && printf '%s\n' "$dir"; } | sha256sum | cut -d' ' -f1)"
  if [[ -x "$dir/bin/python" && "$(cat "$dir/ulpscope.stamp" 2>/dev/null)" == "$want" ]]; then
    return
  fi
  local size="some minutes: 1 GB with the CPU build of PyTorch, 5 GB or more with a CUDA build"
  if ! grep -q '^torch' "$requirements"; then
    size="some megabytes"
  fi
  say "building $dir from $requirements ($size)"
  rm -rf "$dir"
  "$python" -m venv "$dir" || stop "$python cannot make a virtual environment"
  if [[ "$nvidia" == without-nvidia ]]; then
    options=(--no-deps)
  fi
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check "${options[@]}" -r "$requirements" ||
    stop "pip could not install $requirements"
  if [[ "$nvidia" == without-nvidia ]]; then
    "$python" "$root/ci/stub_nvidia.py" "$dir" >&2 || stop "$dir works only with NVIDIA's libraries"
  fi
  printf '%s\n' "$want" >"$dir/ulpscope.stamp"
}

# configure CMAKE_ARGUMENT...: runs CMake only when it never ran with these arguments; ninja notices edited lists itself.
configure() {
  local args=("$@") stamp="$build/ulpscope.configured"
  # Warnings are errors where they are known to be none (GCC 12, and wherever CI asks): a newer compiler's new warning
  # must not stand between a reader and a first run.
  if [[ "${CI:-}" == true || "$(g++ -dumpversion)" == 12 ]]; then
    args+=(-DULPSCOPE_WERROR=ON)
  else
    args+=(-DULPSCOPE_WERROR=OFF)
  fi
  # A library that was installed since is looked for again.
  local found
  found="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${kOptionalPackages[@]}" 2>/dev/null |
    grep '^installed ' || true)"
  found="${found//$'\n'/ }"
  if [[ -f "$build/build.ninja" && "$(cat "$stamp" 2>/dev/null)" == "$root ${args[*]} $found" ]]; then
    return
  fi
  mkdir -p "$build"
  rm -f "$stamp"
  (cd "$root" && cmake --preset release "${args[@]}" >"$build/configure.log" 2>&1) || {
    tail -n 30 "$build/configure.log" >&2
    stop "CMake failed (the whole of it: $build/configure.log)"
  }
  printf '%s\n' "$root ${args[*]} $found" >"$stamp"
}

# one_at_a_time: waits until no other call builds in this checkout. The lock goes with the process that took it.
one_at_a_time() {
  mkdir -p "$root/build"
  exec 9>"$root/build/lock"
  if ! flock -n 9; then
    say "another call is setting up $root: waiting until it is done"
    flock 9
  fi
}

# progress_of WHAT: ninja's lines as they come, counted: on a terminal in place, elsewhere a line at each tenth.
progress_of() {
  local what="$1" line tenth=-1 shown=no
  while IFS= read -r line; do
    if [[ "$line" =~ Re-checking\ globbed|Re-running\ CMake || ! "$line" =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      continue
    fi
    if [[ -t 2 ]]; then
      printf '\r\033[K%s: %s of %s' "$what" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
      shown=yes
    elif ((10 * BASH_REMATCH[1] / BASH_REMATCH[2] > tenth)); then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      say "$what: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    fi
  done
  if [[ "$shown" == yes ]]; then
    say ""
  fi
}

# compile TARGET...: builds, silent when there is nothing to do. ninja -n cannot tell: the sources are globbed.
compile() {
  local log="$build/ninja.log"
  # A lock that the compilers inherit would outlive an interrupted call.
  if ninja -C "$build" "$@" 2>&1 9>&- | tee "$log" 9>&- | progress_of "building $build"; then
    return
  fi
  grep -A 30 -m 3 -E 'FAILED|error:' "$log" >&2 || tail -n 30 "$log" >&2
  say "the build failed (the whole of it: $log)"
  return 1
}

passed=0
failed=0
leg_began="$SECONDS"
leg_times=()

# count LEG PASSED FAILED [SECONDS]: a leg that ran nothing is a failure of its own. Unless told, it took the time since the
# one before it.
count() {
  local leg="$1" good="$2" bad="$3" took="${4:-$((SECONDS - leg_began))}"
  leg_began="$SECONDS"
  leg_times+=("$took s  $leg")
  if ((good + bad == 0)); then
    say "FAILED $leg: it ran no test"
    bad=1
  fi
  passed=$((passed + good))
  failed=$((failed + bad))
  say "$leg: $good passed, $bad failed ($took s)"
}

within=0 built=0 tested=0
left_out=()

# in_time LEG: whether a leg with a build of its own may begin: within so many minutes (0: any number), where setting up took `built`
# seconds and the GoogleTest cases `tested`. Else it is one of those left out.
in_time() {
  ((within == 0 || SECONDS + built + tested <= 60 * within)) && return
  left_out+=("$1 (some $(((built + tested) / 60)) minutes more, and $((SECONDS / 60)) of $within are over)")
  return 1
}

# longest_first LOGS: the script files of standard input, by the seconds that each took when it last ran (LOGS has them), and in a
# fresh clone by those in ci/script_seconds: with two at a time, none of the long ones then runs alone at the end. What never ran
# may be long: it comes first.
longest_first() {
  local file name took seconds
  local -A known=()
  while read -r seconds name; do
    [[ "$seconds" == '#'* ]] || known["$name"]="$seconds"
  done <"$root/ci/script_seconds"
  while IFS= read -r file; do
    name="${file#"$root"/}"
    took="${known["${name//\//_}"]:-99999}"
    if [[ -f "$1/${name//\//_}.log.counts" ]]; then
      read -r _ _ took <"$1/${name//\//_}.log.counts"
    fi
    printf '%s\t%s\n' "$took" "$file"
  done | sort -s -k1,1nr | cut -f2-
}

# slowest_legs: the ten that took longest.
slowest_legs() {
  say "slowest legs:"
  printf '%s\n' "${leg_times[@]}" | sort -rn | sed -n 's/^/  /;1,10p' >&2
}

# ran_of LOG: "PASSED FAILED" as a script's own closing lines tell it: unittest's `Ran N tests`, or `N passed, N failed`.
ran_of() {
  awk '
    /^Ran [0-9]+ tests? in/ { ran = $2; unittest = 1 }
    /^FAILED \(/ { n = 0; s = $0; while (match(s, /(failures|errors)=[0-9]+/)) {
                     split(substr(s, RSTART, RLENGTH), p, "="); n += p[2]; s = substr(s, RSTART + RLENGTH) } bad = n }
    /^OK \(.*skipped=/ || /^FAILED \(.*skipped=/ { s = $0; sub(/.*skipped=/, "", s); skipped = s + 0 }
    /^[0-9]+ passed, [0-9]+ failed$/ { ran = $1 + $3; bad = $3; unittest = 0; skipped = 0 }
    END { print ran - bad - skipped, bad + 0 }' "$1"
}
