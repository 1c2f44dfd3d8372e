#!/usr/bin/env bash
# Mounts an FSx for Lustre file system on all hosts of an EC2 cluster. Run it on the master:
#     HOSTFILE=~/hostfile k8s/ec2/attach-fsx.sh DNS_NAME MOUNT_NAME
# `aws fsx describe-file-systems` shows both names. FSX is the mount point (/fsx), TIMEOUT (120 seconds) limits each
# host. The file system is mounted again after a reboot. Hosts need AWS's Lustre client. Run the script again after a
# failure.
# Exit codes: 0 mounted on all hosts; 1 usage; 4 a host does not respond over ssh; 5 a host could not mount it; 6 a host
# has no Lustre client.
set -uo pipefail
fsx=${FSX:-/fsx}
hostfile=${HOSTFILE:-$HOME/hostfile}
timeout=${TIMEOUT:-120}
say() { echo "attach-fsx.sh: $*" >&2; }
die() {
  say "$1"
  exit "${2:-1}"
}
[ $# = 2 ] || die "usage: k8s/ec2/attach-fsx.sh DNS_NAME MOUNT_NAME"
[[ $1 =~ ^fs-[0-9a-f]+\.fsx\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$ ]] ||
  die "'$1': expected a DNS name such as fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com"
[[ $2 =~ ^[a-z0-9]{1,8}$ ]] || die "'$2': expected a mount name of up to 8 letters and digits, such as abcdefgh"
[[ $fsx =~ ^/[A-Za-z0-9._/-]+$ ]] || die "FSX is '$fsx': expected a folder such as /fsx"
[[ $timeout =~ ^[1-9][0-9]{0,3}$ ]] || die "TIMEOUT is '$timeout': expected seconds from 1"
{ [ -f "$hostfile" ] && [ -r "$hostfile" ] && [ "$(stat -Lc %s "$hostfile")" -le 1048576 ]; } ||
  die "there is no hostfile $hostfile of 1 MiB at most: 'stack.sh hosts' writes one, or set HOSTFILE"
mapfile -t hosts < <(awk '{ sub(/#.*/, "") } NF { print $1 }' "$hostfile" | sort -u)
[ ${#hosts[@]} != 0 ] || die "$hostfile names no host"
for host in "${hosts[@]}"; do
  [[ $host =~ ^[A-Za-z0-9][A-Za-z0-9.-]*$ ]] || die "$hostfile: $(printf %q "$host") is not a host name"
done

# Runs on each host. Exit codes: 0 mounted, 10 no client, 11 not mounted. flock makes locks work across hosts.
# shellcheck disable=SC2016  # the host's own variables
remote='set -u
source=$1 fsx=$2
if mountpoint -q "$fsx"; then
  [ "$(findmnt -n -o SOURCE "$fsx")" = "$source" ] && exit 0
  echo "$fsx is $(findmnt -n -o SOURCE "$fsx")" >&2
  exit 11
fi
command -v mount.lustre >/dev/null || [ -x /sbin/mount.lustre ] || exit 10
sudo mkdir -p "$fsx" && sudo mount -t lustre -o noatime,flock "$source" "$fsx" || exit 11
grep -q "^$source " /etc/fstab ||
  sudo tee -a /etc/fstab <<<"$source $fsx lustre noatime,flock,_netdev,x-systemd.automount 0 0" >/dev/null || exit 11
sudo chown "$(id -u):$(id -g)" "$fsx"'
result=0
for host in "${hosts[@]}"; do
  errors=$(timeout -k 2 "$timeout" ssh -n -o BatchMode=yes -o ConnectTimeout=5 -- "$host" \
    "bash -c $(printf %q "$remote") attach $(printf %q "$1@tcp:/$2") $(printf %q "$fsx")" 2>&1 >/dev/null)
  code=$?
  case $code in
    0) continue ;;
    10)
      say "$host: there is no Lustre client: install AWS's client for its kernel (FSx user guide, Installing the Lustre \
client)"
      code=6
      ;;
    11)
      say "$host: $fsx could not be mounted: ${errors##*$'\n'}"
      code=5
      ;;
    *)
      say "$host: no response over ssh within $timeout s: ${errors##*$'\n'}"
      code=4
      ;;
  esac
  [ $result != 0 ] || result=$code
done
[ $result != 0 ] || echo "attach-fsx.sh: $1 is mounted at $fsx on ${#hosts[@]} hosts"
exit $result
