#!/usr/bin/env bash
# Installs the Debian 12 packages that are missing; asks apt nothing where none is.
#   scripts/setup.sh build   what the quickstarts need: compiler, build tools, libraries
#   scripts/setup.sh test    that, and what test.sh needs: test libraries, reference decoders, PyTorch
set -euo pipefail

packages=(g++ cmake ninja-build libdnnl-dev nlohmann-json3-dev libfmt-dev libjpeg62-turbo-dev libpng-dev
  libgif-dev libtiff-dev libwebp-dev libsodium-dev libtomlplusplus-dev zlib1g-dev libhwloc-dev prometheus-cpp-dev
  libcpp-httplib-dev openmpi-bin libopenmpi-dev)
case "${1:-}" in
  build) ;;
  test) packages+=(ccache clang-16 libclang-rt-16-dev libomp-16-dev mold clang-format-14 doxygen git pkg-config
    libgtest-dev libbenchmark-dev libprotobuf-dev protobuf-compiler libjpeg-turbo-progs python3-numpy python3-pil
    python3-torch python3-torchvision python3-yaml python3-jsonschema python3-pip python3-venv shellcheck openssh-client
    openssh-server iproute2 dpkg-dev file man-db curl unzip qemu-user buildah crun skopeo libnss-extrausers
    chromium-headless-shell nginx-light apache2-utils libnss3-tools
    libopenblas0-openmp) ;;  # PyTorch computes in double precision with BLAS, whose reference form is ten times slower
  *) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 1 ;;
esac

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
  echo "All ${#packages[@]} Debian packages are installed."
  exit
fi

echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "Neither root nor sudo: please install them and start again."; exit 1; }
  as_root=(sudo)
fi
if [[ " ${missing[*]} " == *" nginx-light "* ]]; then
  # The tests start proxies of their own: Debian's must not serve on this machine.
  echo "Its nginx stays off: /etc/systemd/system/nginx.service"
  "${as_root[@]}" mkdir -p /etc/systemd/system
  "${as_root[@]}" ln -sfn /dev/null /etc/systemd/system/nginx.service
fi
if [[ " ${missing[*]} " == *" openssh-server "* ]]; then
  # The tests start servers of their own: Debian's must not open this machine to the network.
  echo "Its ssh server stays off: /etc/ssh/sshd_not_to_be_run"
  "${as_root[@]}" install -D -m 644 /dev/null /etc/ssh/sshd_not_to_be_run
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
