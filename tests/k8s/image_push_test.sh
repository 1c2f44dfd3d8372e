#!/usr/bin/env bash
# Pushes an image to a local registry, as a generic registry and as ECR with a fake AWS CLI:
# image_push_test.sh FOLDER, the output of image_build.sh.
set -euo pipefail
folder=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
skip() {
  echo "SKIPPED: $1"
  exit 0
}
[ "$(id -u)" = 0 ] || skip "namespaces are made by root"
for program in skopeo curl; do command -v $program >/dev/null || skip "there is no $program"; done
[ -d "$folder/rootfs" ] || skip "there is no image in $folder"
[ -x "$source/k8s/set.sh" ] || skip "there is no k8s/set.sh"
if [ -z "${DTRAIN_INSIDE:-}" ]; then
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
  # Not installed: Debian's package would start a registry that listens on the network.
  if ! command -v docker-registry >/dev/null; then
    (cd "$place" && apt-get download -qq docker-registry) >/dev/null 2>&1 || skip "there is no docker-registry"
    dpkg -x "$place"/docker-registry_*.deb "$place/registry-package"
    export PATH=$PATH:$place/registry-package/usr/bin
  fi
  DTRAIN_INSIDE=$place unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private "$0" "$@"
  exit
fi
place=$DTRAIN_INSIDE
ip link set lo up
umount -l /sys/fs/cgroup/unified 2>/dev/null || true
mount -t tmpfs -o mode=755 tmpfs /run
expect() { grep -qF -- "$1" "$2" || { echo "expected '$1' in $2:"; cat "$2"; exit 1; }; }

# A repository with modifiable overlays. Its images have the SBOM alone: image_build.sh builds a whole image.
mkdir -p "$place/project/k8s" "$place/bin" "$place/registry" "$place/tree/usr/share"
cp "$source/CMakeLists.txt" "$place/project/"
for name in images overlays lib instance-types.csv set.sh; do cp -r "$source/k8s/$name" "$place/project/k8s/"; done
cp -r "$folder/rootfs/usr/share/dtrain" "$place/tree/usr/share/"
# shellcheck disable=SC2016
printf '#!/bin/sh\ntar -C "$1" -cf "$2" .\n' >"$place/project/k8s/images/common/root-filesystem.sh"

printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s/registry}}\nhttp: {addr: "127.0.0.1:5000"}\n' "$place" \
  >"$place/registry.yml"
docker-registry serve "$place/registry.yml" >"$place/registry.log" 2>&1 &
for _ in {1..600}; do
  if curl -s -o /dev/null http://127.0.0.1:5000/v2/; then break; fi
  sleep 0.1
done
build() { "$place/project/k8s/images/build.sh" --prebuilt "$place/tree" --push "$@" cpu >"$place/output" 2>&1; }

version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
build 127.0.0.1:5000/team || { cat "$place/output"; exit 1; }
digest=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://127.0.0.1:5000/team/dtrain-cpu:$version")
image=127.0.0.1:5000/team/dtrain-cpu:$version@$digest
expect "IMAGE: $image" <(tr -d '"' <"$place/project/k8s/overlays/smoke/parameters.yaml")
expect "k8s/overlays/smoke: IMAGE=$image" "$place/output"
skopeo copy -q --src-tls-verify=false "docker://127.0.0.1:5000/team/dtrain-cpu@$digest" "dir:$place/pulled"
# The digest names the index, which has the attestation, too.
skopeo inspect --raw --tls-verify=false "docker://127.0.0.1:5000/team/dtrain-cpu@$digest" >"$place/index"
expect '"vnd.docker.reference.type":"attestation-manifest"' "$place/index"
for overlay in "$place"/project/k8s/overlays/*/parameters.yaml; do  # overlays of other images are unchanged
  if grep -q 'IMAGE: .*dtrain-cuda' "$overlay"; then expect 'IMAGE: dtrain-cuda' <(tr -d '"' <"$overlay"); fi
done

# An AWS CLI without repositories, and a registry with an ECR host name.
cat >"$place/bin/aws" <<'END'
#!/bin/sh
echo "$*" >>"$AWS_LOG"
case $2 in describe-repositories) exit 254 ;; get-login-password) echo word ;; esac
END
chmod +x "$place/bin/aws"
export AWS_LOG=$place/aws.log PATH=$place/bin:$PATH REGISTRY_AUTH_FILE=$place/auth.json
cp /etc/hosts "$place/hosts"
registry=123456789012.dkr.ecr.eu-west-1.localhost:5000
echo "127.0.0.1 ${registry%:*}" >>"$place/hosts"
mount --bind "$place/hosts" /etc/hosts
build $registry || { cat "$place/output"; exit 1; }
expect "ecr create-repository --region eu-west-1 --repository-name dtrain-cpu" "$place/aws.log"
expect "IMAGE: $registry/dtrain-cpu:$version@sha256:" <(tr -d '"' <"$place/project/k8s/overlays/smoke/parameters.yaml")

# Nothing listens at this port.
if build 127.0.0.1:5001; then code=0; else code=$?; fi
[ $code = 4 ] || { echo "expected 4, found $code"; cat "$place/output"; exit 1; }
expect "127.0.0.1:5001 rejected" "$place/output"
echo "pushed, pulled by digest, and set in the overlays"
