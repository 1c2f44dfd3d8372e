# shellcheck shell=bash disable=SC2034,SC2154  # callers set `programs` and use `others`
# Functions that the quickstarts share: timed steps, and the first two steps. Source it in the root of the repository.

# Formats seconds as "0:07".
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# step TITLE: prints the duration of the previous step and the title of the next one.
step_began=
end_step() { [ -z "$step_began" ] || echo "-- done in $(clock $((SECONDS - step_began))) min --"; }
step() {
  end_step
  step_began=$SECONDS
  echo
  echo "== $* =="
}

# Steps 1 and 2: provides $programs in build/bin, from the first argument if it is a release's archive (.tar.gz), else
# from dist/dtrain-*.tar.gz if that exists and build/ has not been configured, else from source. When it builds from
# source, arguments are passed to cmake, e.g. -DDTRAIN_CUDA=ON. Sets $others to a sentence about the other programs.
get_programs() {
  local archive=
  if [[ ${1:-} == *.tar.gz ]]; then
    archive=$1
    shift
    [ $# = 0 ] || { echo "$0: '$1': expected no argument after an archive" >&2; exit 1; }
    [ -e "$archive" ] || { echo "$0: $archive does not exist" >&2; exit 1; }
  elif [ $# = 0 ] && [ ! -e build/CMakeCache.txt ]; then
    archive=$(printf '%s\n' dist/dtrain-*-linux-x86_64.tar.gz | sort -V | tail -n 1)
    [ -e "$archive" ] || archive=
  fi
  if [ -n "$archive" ]; then
    others="All programs are in build/bin."
    step "1/5 Debian packages: none, $archive has what it needs"
    step "2/5 Programs: unpacking $archive into build/"
    mkdir -p build
    tar xzf "$archive" -C build --strip-components=1
  else
    others="To build all programs (a few minutes):
  cmake --build build --target programs"
    step "1/5 Debian packages"
    scripts/setup.sh build
    build_programs "$@"
  fi
  build/bin/"${programs[0]}" --version
}

# Two cores of an AMD EPYC (Zen 4) take 12 minutes for an empty build/ and compiler cache.
core_minutes=24
build_programs() {
  step "2/5 Build: ${programs[*]}, preset release, into build/; about $(((core_minutes + $(nproc) - 1) / $(nproc))) min the first time"
  # CPU only, unless the machine has a GPU or an argument enables CUDA.
  local gpu=()
  nvidia-smi -L 2>/dev/null | grep GPU >/dev/null && gpu=(-DDTRAIN_CUDA=AUTO)
  cmake --preset release "${gpu[@]}" "$@" | grep -- '^-- \(dtrain\|  \)'
  NINJA_STATUS='%f %t %e ' cmake --build --preset release --target "${programs[@]}" | show_progress
}

# Reads ninja's output, of which each step begins with the numbers of finished and all steps and the seconds so far.
# Prints a line with an estimate of the remaining time every 20 seconds, and everything that is not a step.
show_progress() {
  awk 'function minutes(s) { return sprintf("%d:%02d", s / 60, s % 60) }
    /^[0-9]+ [0-9]+ [0-9.]+ / {
      if ($3 >= shown + 20 && $1 > 0) {
        shown = $3
        printf "%3d of %d steps in %s min, about %s min left\n", $1, $2, minutes($3), minutes($3 / $1 * ($2 - $1))
        fflush()
      }
      next
    }
    { print; fflush() }'
}
