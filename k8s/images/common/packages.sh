#!/usr/bin/env bash
# Installs what an image is built with and made of, on a Debian 12. Open MPI is 4.1: mpi-operator starts no other.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends 'openmpi-bin=4.1.*' 'libopenmpi-dev=4.1.*' openssh-server openssh-client \
  libnss-extrausers mawk hostname
scripts/setup.sh build
rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
