#!/usr/bin/env bash
# Tunes a node for training at boot (user data). Skips missing hardware and tools: no failure here keeps a
# node from joining its cluster.
set -uo pipefail
say() { logger --tag tune-node -- "$*" || echo "tune-node: $*"; }

# Runs again after each boot.
again=/var/lib/cloud/scripts/per-boot/tune-node.sh
if ! [ "${BASH_SOURCE[0]}" -ef "$again" ]; then
  install -D -m 0755 "${BASH_SOURCE[0]}" "$again" || say "will not run after a reboot"
fi

# Jumbo frames (MTU 9001) between nodes.
for path in /sys/class/net/*; do
  device=${path##*/}
  [ -e "$path/device" ] || continue
  ip link set dev "$device" mtu 9001 || say "$device keeps its MTU"
done

# Pods with EFA request huge pages, which must be allocated before the node joins.
if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
  sysctl --quiet --write vm.nr_hugepages=5128 || say "no huge pages"
fi

# Persistence mode, and maximum application clocks.
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --persistence-mode=1 || say "no persistence mode"
  nvidia-smi --auto-boost-default=0 || say "this GPU has no auto boost"
  clocks=$(nvidia-smi --query-gpu=clocks.max.memory,clocks.max.graphics --format=csv,noheader,nounits | head -n 1)
  if [[ $clocks =~ ^([0-9]+),\ *([0-9]+)$ ]]; then
    nvidia-smi --applications-clocks="${BASH_REMATCH[1]},${BASH_REMATCH[2]}" || say "the application clocks stay"
  fi
fi
exit 0
