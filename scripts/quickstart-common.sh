# What the quickstarts share, to be sourced from the root of the repository: numbered steps with their times, and the
# first two of them.

# "0:07", of seconds.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Says how long the step before took, and what the next one is.
step_began=
end_step() { [ -z "$step_began" ] || echo "-- done in $(clock $((SECONDS - step_began))) min --"; }
step() {
  end_step
  step_began=$SECONDS
  echo
  echo "== $* =="
}

# Steps 1 and 2; $programs are what the quickstart runs. Arguments go to cmake, e.g. -DDTRAIN_CUDA=ON.
install_and_build() {
  step "1/5 Debian packages"
  scripts/setup.sh build

  step "2/5 Build: ${programs[*]}, preset release, into build/"
  # CPU only, unless there is a GPU to run on or the caller asks for one.
  local gpu=()
  nvidia-smi -L 2>/dev/null | grep GPU >/dev/null && gpu=(-DDTRAIN_CUDA=AUTO)
  cmake --preset release "${gpu[@]}" "$@" | grep -- '^-- \(dtrain\|  \)'
  cmake --build --preset release --target "${programs[@]}"
}
