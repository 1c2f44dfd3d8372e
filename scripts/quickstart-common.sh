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

# Steps 1 and 2: builds $programs. Arguments are passed to cmake, e.g. -DDTRAIN_CUDA=ON.
install_and_build() {
  step "1/5 Debian packages"
  scripts/setup.sh build

  step "2/5 Build: ${programs[*]}, preset release, into build/"
  # CPU only, unless the machine has a GPU or an argument enables CUDA.
  local gpu=()
  nvidia-smi -L 2>/dev/null | grep GPU >/dev/null && gpu=(-DDTRAIN_CUDA=AUTO)
  cmake --preset release "${gpu[@]}" "$@" | grep -- '^-- \(dtrain\|  \)'
  cmake --build --preset release --target "${programs[@]}"
}
