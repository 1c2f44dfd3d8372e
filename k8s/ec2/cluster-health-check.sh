#!/usr/bin/env bash
# Checks the hosts of an EC2 cluster: ssh, the shared disk, and the ranks' devices, versions and network.
#     FS=/efs HOSTFILE=~/hostfile k8s/ec2/cluster-health-check.sh [FLAG...]
# FLAGs are those of `dtrain-info --ranks`, such as --device=gpu, which finds hosts without a GPU.
# Exit codes: 0 all is well, 1 usage, or something that `dtrain-info` finds to be off, 4 a host does not answer over
# ssh or the network failed, 6 the file system is not one that all hosts share.
set -uo pipefail
fs=${FS:-/efs}
hostfile=${HOSTFILE:-$HOME/hostfile}
say() { echo "cluster-health-check.sh: $*" >&2; }
if ! [ -r "$hostfile" ]; then
  say "there is no hostfile $hostfile: 'stack.sh hosts' writes one, or set HOSTFILE"
  exit 1
fi
mapfile -t hosts < <(awk '{ sub(/#.*/, "") } NF { print $1 }' "$hostfile")
if [ ${#hosts[@]} = 0 ]; then
  say "$hostfile names no host"
  exit 1
fi
for host in "${hosts[@]}"; do
  if ! [[ $host =~ ^[A-Za-z0-9][A-Za-z0-9.-]*$ ]]; then
    say "$hostfile: $(printf %q "$host") is no name of a host"
    exit 1
  fi
done
if ! mark=$(mktemp "$fs/.health-check-XXXXXXXX"); then
  say "$fs cannot be written"
  exit 6
fi
trap 'rm -f "$mark"' EXIT
printf '%s\n' "${mark##*/}" >"$mark" || exit 6

result=0
for host in "${hosts[@]}"; do
  options=(-n -o BatchMode=yes -o ConnectTimeout=5)
  if ! ssh "${options[@]}" -- "$host" true; then
    say "$host: no ssh login"
    result=4
  elif [ "$(ssh "${options[@]}" -- "$host" cat "$(printf %q "$mark")" 2>&1)" != "${mark##*/}" ]; then
    say "$host: a file written to $fs here is not to be read there: the disk is not shared"
    [ $result != 0 ] || result=6
  fi
done
[ $result = 0 ] || exit $result

ranks=$(awk '{ sub(/#.*/, "") } NF { n = 1; for (i = 2; i <= NF; i++) if ($i ~ /^slots=[0-9]+$/) n = substr($i, 7)
  total += n } END { print total + 0 }' "$hostfile")
distinct=$(printf '%s\n' "${hosts[@]}" | sort -u | wc -l)
dtrain-mpirun --hostfile "$hostfile" -np "$ranks" --bind-to none \
  dtrain-info --ranks --expect_ranks="$ranks" --expect_hosts="$distinct" "$@"
