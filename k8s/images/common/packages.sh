#!/usr/bin/env bash
# Installs build dependencies and packages of an image on Debian 12. Open MPI is 4.1: MPI Operator does not support 5.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends 'openmpi-bin=4.1.*' 'libopenmpi-dev=4.1.*' openssh-server openssh-client \
  libnss-extrausers mawk hostname
scripts/setup.sh build
rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
