#!/usr/bin/env bash
# Boots hosts of k8s/ec2 with the files of a release. Bare Debian roots stand for the hosts: Debian 13 and 12 install
# packages by apt, Debian 11 the archive, since a release has no packages for it, as for Ubuntu of the Deep Learning AMI.
#     tests/k8s/ec2_release.sh RELEASE_FOLDER [SUITE...]
# On each: the user data of cluster.yaml with real apt, and recorders for mount, curl and hostname; an all-reduce of two
# ranks by dtrain-mpirun; install.sh again, with a GPU that cannot be used, and with damaged files. Needs root and
# debootstrap, as scripts/release/in_root.sh. Exit code 0: passed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
release=$(realpath -e "${1:?RELEASE_FOLDER}")
shift
[ $# != 0 ] || set -- trixie bookworm bullseye
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/#!\/usr\/bin\/env bash/,/signal SUCCESS/s/^ \{14\}//p' "$root/k8s/ec2/cluster.yaml" |
  sed -e "s|\${\([A-Za-z]*\)Handle}|https://signal.test/\1|; s|\${Fs}|fs-0|; s|\${AWS::Region}|us-west-2|" \
    -e "s|\${AWS::URLSuffix}|amazonaws.com|" >"$work/user-data"
cat >"$work/host" <<'HOST'
set -euo pipefail
fail() { echo "ec2_release.sh: $*" >&2; exit 1; }
recorder() { printf '#!/bin/bash\n%s\n' "$2" >"/usr/local/bin/$1" && chmod +x "/usr/local/bin/$1"; }
export PATH=/usr/local/bin:$PATH
recorder hostname '[ "$*" ] && echo "10.0.64.9 " || echo host'
recorder curl 'printf "%s\n" "$@" >/signal'
recorder mount 'mkdir /efs/packages && cp /dist/*.deb /dist/*.tar.gz /ec2/install.sh /efs/packages &&
  cd /efs/packages && sha256sum *.deb *.tar.gz >SHA256SUMS'
bash /boot-script/user-data >/log 2>&1 || fail "user data: $(tail -n 20 /log)"
grep -q '"Status": "SUCCESS"' /signal && [ "$(tail -n 1 /signal)" = https://signal.test/Workers ] || fail "$(cat /signal)"
[ "$(stat -c %u /efs)" = 1000 ] || fail "/efs does not belong to the first user"
said=$(grep '^install.sh: ' /log)
echo "$said"
case $1 in
  bullseye) [[ $said == *"dtrain-"*"-linux-x86_64.tar.gz on Debian GNU/Linux 11"* ]] || fail "expected the archive" ;;
  *)
    [[ $said == *"libdtrain0_"*"~deb"*" dtrain_"*"~deb"*" on Debian GNU/Linux 1"[23]* ]] || fail "expected packages"
    [ -z "$(dpkg --audit; dpkg --verify dtrain libdtrain0)" ] || fail "the packages are damaged"
    ;;
esac
cd /efs/packages
bash install.sh >/log 2>&1 || fail "the second installation: $(tail -n 5 /log)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
dtrain-mpirun --oversubscribe -np 2 dtrain-allreduce-benchmark --device=cpu --expect_ranks=2 --sizes=64K --iterations=2 \
  --warmup=1 >/log 2>&1 || fail "all-reduce: $(tail -n 5 /log)"
recorder nvidia-smi 'echo GPU 0: any'
code=0 && said=$(bash install.sh 2>&1) || code=$?
[ $code = 7 ] && [[ $said == *"the GPU cannot be used: "*"release made with CUDA"* ]] || fail "exit $code: $said"
for file in *.deb *.tar.gz; do printf x >>"$file"; done
code=0 && said=$(bash install.sh 2>&1) || code=$?
[ $code = 2 ] && [[ $said == *"SHA256SUMS has another digest" ]] || fail "exit $code: $said"
HOST
for suite; do
  echo "== $suite"
  "$root/scripts/release/in_root.sh" "$suite" \
    --prepare 'apt-get update -qq && apt-get install -y -qq --no-install-recommends openmpi-bin openssh-client' \
    --mount "$release:/dist:ro" --mount "$root/k8s/ec2:/ec2:ro" --mount "$work:/boot-script:ro" \
    "bash /boot-script/host $suite"
done
echo "passed: $*"
