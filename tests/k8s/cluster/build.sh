#!/usr/bin/env bash
# Builds a single-node Kubernetes once: Debian's packages in a separate root file system, and Kubernetes from Debian's
# source package. The result is in $DTRAIN_K8S_CACHE (default ~/.cache/dtrain/kubernetes); the file `complete` marks
# completion. Needs root, the network and about 15 minutes.
set -euo pipefail

cache=${DTRAIN_K8S_CACHE:-$HOME/.cache/dtrain/kubernetes}
root=$cache/root
node=(etcd-server containerd crun containernetworking-plugins iptables iproute2 procps conntrack openssl)
compiler=(golang-go golang-github-modern-go-reflect2-dev dpkg-dev make rsync gcc libc6-dev)
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet)

if [ -e "$cache/complete" ]; then
  echo "$cache is complete."
  exit
fi
mkdir -p "$cache/bin"

if [ ! -e "$cache/packages" ]; then
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" >"$cache/debootstrap.log" 2>&1
  # Prevents packages from starting services.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  sed 's/^deb /deb-src /' "$root/etc/apt/sources.list" >"$root/etc/apt/sources.list.d/sources.list"
  chroot "$root" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive chroot "$root" \
    apt-get install -y -qq --no-install-recommends "${node[@]}" "${compiler[@]}" >"$cache/packages.log" 2>&1
  touch "$cache/packages"
fi

if [ ! -e "$cache/source" ]; then
  rm -rf "$root/build"
  mkdir "$root/build"
  chroot "$root" sh -c 'cd /build && apt-get source -qq kubernetes' >"$cache/source.log" 2>&1
  mv "$root"/build/kubernetes-*/ "$root/build/kubernetes"
  # The vendored reflect2 is too old for Go 1.19: programs would crash with SIGSEGV.
  rm -rf "$root/build/kubernetes/vendor/github.com/modern-go/reflect2"
  cp -rL "$root/usr/share/gocode/src/github.com/modern-go/reflect2" \
    "$root/build/kubernetes/vendor/github.com/modern-go/reflect2"
  touch "$cache/source"
fi

version=$(sed -n '1s/.*[(y]\([0-9.]*\)-.*/\1/p' "$root/build/kubernetes/debian/changelog")
printf '%s\n' "KUBE_GIT_COMMIT=debian" "KUBE_GIT_TREE_STATE=clean" "KUBE_GIT_VERSION=v$version" \
  "KUBE_GIT_MAJOR=1" "KUBE_GIT_MINOR=$(cut -d. -f2 <<<"$version")" >"$root/build/version"
# The build needs /proc and /dev/null, which the separate root lacks.
unshare --mount --propagation private sh -c "
  mount -t proc proc $root/proc && mount --rbind /dev $root/dev
  exec nice -n 19 chroot $root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/build LANG=C.UTF-8 \
    GOFLAGS=-mod=vendor GO111MODULE=on KUBE_GIT_VERSION_FILE=/build/version \
    make -C /build/kubernetes WHAT='${programs[*]/#/cmd\/}'" >"$cache/build.log" 2>&1
for program in "${programs[@]}"; do
  install -s "$root/build/kubernetes/_output/local/bin/linux/amd64/$program" "$cache/bin/$program"
done
# The pause container, which holds a pod's namespaces.
printf '#include <unistd.h>\nint main(void) { for (;;) pause(); }\n' >"$root/build/pause.c"
chroot "$root" gcc -static -Os -o /build/pause /build/pause.c
install -s "$root/build/pause" "$cache/bin/pause"
rm -rf "$root/build"
touch "$cache/complete"
