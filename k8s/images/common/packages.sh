#!/usr/bin/env bash
# Installs build dependencies and packages of an image on Debian 12 or 13.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends openmpi-bin libopenmpi-dev openssh-server openssh-client \
  libnss-extrausers mawk hostname
scripts/setup.sh build
rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
