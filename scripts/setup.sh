#!/usr/bin/env bash
# Installs missing packages of Debian 13, Debian 12 or Ubuntu 24.04; does not run apt if none is missing.
#   scripts/setup.sh build   packages for building: compiler, build tools, libraries
#   scripts/setup.sh test    also packages for test.sh: test libraries, reference decoders, PyTorch
set -euo pipefail

packages=(g++ cmake ninja-build libboost-dev libdnnl-dev nlohmann-json3-dev libfmt-dev libjpeg-dev libpng-dev
  libgif-dev libtiff-dev libwebp-dev libsodium-dev libtomlplusplus-dev zlib1g-dev libhwloc-dev libprotobuf-dev
  protobuf-compiler prometheus-cpp-dev openmpi-bin libopenmpi-dev)
clang=(clang libclang-rt-dev libomp-dev)
# shellcheck source=/dev/null
system=$(. /etc/os-release && echo "$ID $VERSION_ID")
[ "$system" != "debian 12" ] || clang=(clang-16 libclang-rt-16-dev libomp-16-dev)  # its default is Clang 14
case "${1:-}" in
  build) ;;
  test) packages+=("${clang[@]}" ccache mold doxygen git pkg-config
    libgtest-dev libbenchmark-dev libeigen3-dev libjpeg-turbo-progs python3-numpy python3-pil
    python3-torch python3-torchvision python3-yaml python3-jsonschema python3-pip python3-venv shellcheck openssh-client
    openssh-server iproute2 abigail-tools dpkg-dev file man-db curl unzip qemu-user crun skopeo libnss-extrausers
    libcurl4-openssl-dev chromium-headless-shell nginx-light apache2-utils libnss3-tools
    slurmctld slurmd slurm-client munge
    libopenblas0-openmp) ;;  # ten times faster than the reference BLAS for PyTorch in double precision
  *) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 1 ;;
esac

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
  echo "All ${#packages[@]} packages are installed."
  exit
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh needs root or sudo to install them"; exit 1; }
  as_root=(sudo)
fi
# Tests start their own proxies and clusters: Debian's services must not run on this machine.
for service in nginx-light:nginx slurmctld slurmd munge; do
  [[ " ${missing[*]} " == *" ${service%:*} "* ]] || continue
  unit=/etc/systemd/system/${service#*:}.service
  echo "Masking the service ${service#*:}: $unit"
  "${as_root[@]}" mkdir -p /etc/systemd/system
  "${as_root[@]}" ln -sfn /dev/null "$unit"
done
if [[ " ${missing[*]} " == *" openssh-server "* ]]; then
  # Tests start their own servers: Debian's sshd must not open this machine to the network.
  echo "Disabling the ssh service: /etc/ssh/sshd_not_to_be_run"
  "${as_root[@]}" install -D -m 644 /dev/null /etc/ssh/sshd_not_to_be_run
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
