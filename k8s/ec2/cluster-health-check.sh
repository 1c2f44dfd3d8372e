#!/usr/bin/env bash
# Checks the hosts of an EC2 cluster before training: ssh, the shared disk, devices and versions of the ranks, and
# all-reduce results and bandwidth over all ranks (NCCL on GPUs).
#     FS=/efs HOSTFILE=~/hostfile k8s/ec2/cluster-health-check.sh [--device=gpu|cpu] [--min_bandwidth=GB/S]
# FS is the shared file system (/efs; /fsx after attach-fsx.sh), HOSTFILE the hostfile of mpirun. By default each rank
# needs a GPU. --min_bandwidth is the minimum bus bandwidth of a 64 MiB all-reduce, as defined by nccl-tests (default:
# none). TIMEOUT (30 seconds) limits each login.
# Exit codes: 0 healthy; 1 usage, or a problem that `dtrain-info --ranks` finds, such as a rank without a GPU; 4 a host
# does not respond over ssh, the network failed, or all-reduce results were wrong or slower than the minimum; 6 the file
# system is not shared by all hosts.
set -uo pipefail
fs=${FS:-/efs}
hostfile=${HOSTFILE:-$HOME/hostfile}
timeout=${TIMEOUT:-30}
device=gpu
least=0
say() { echo "cluster-health-check.sh: $*" >&2; }
die() {
  say "$1"
  exit "${2:-1}"
}
for argument in "$@"; do
  case $argument in
    --device=gpu | --device=cpu) device=${argument#*=} ;;
    --min_bandwidth=*) least=${argument#*=} ;;
    *) die "$(printf %q "$argument"): expected --device=gpu, --device=cpu or --min_bandwidth=GB/S" ;;
  esac
done
[[ $least =~ ^[0-9]{1,6}(\.[0-9]{1,6})?$ ]] || die "--min_bandwidth is '$least': expected GB/s, such as 1.5"
[[ $timeout =~ ^[1-9][0-9]{0,3}$ ]] || die "TIMEOUT is '$timeout': expected seconds from 1"
{ [ -f "$hostfile" ] && [ -r "$hostfile" ] && [ "$(stat -Lc %s "$hostfile")" -le 1048576 ]; } ||
  die "there is no hostfile $hostfile of 1 MiB at most: 'stack.sh hosts' writes one, or set HOSTFILE"
mapfile -t hosts < <(awk '{ sub(/#.*/, "") } NF { print $1 }' "$hostfile" | sort -u)
[ ${#hosts[@]} != 0 ] || die "$hostfile names no host"
for host in "${hosts[@]}"; do
  [[ $host =~ ^[A-Za-z0-9][A-Za-z0-9.-]*$ ]] || die "$hostfile: $(printf %q "$host") is not a host name"
done
command -v dtrain-mpirun >/dev/null || die "there is no dtrain-mpirun: run install.sh on each host"
mark=$(mktemp "$fs/.health-check-XXXXXXXX") || die "$fs cannot be written" 6
trap 'rm -f "$mark" "$mark.json"' EXIT
printf '%s\n' "${mark##*/}" >"$mark" || die "$fs cannot be written" 6

# Reads from a disk whose server is down block, so the other host needs a timeout, too.
result=0
options=(-n -o BatchMode=yes -o ConnectTimeout=5)
for host in "${hosts[@]}"; do
  if ! timeout -k 2 "$timeout" ssh "${options[@]}" -- "$host" true; then
    say "$host: no ssh login within $timeout s"
    result=4
  elif [ "$(timeout -k 2 "$timeout" ssh "${options[@]}" -- "$host" timeout "$timeout" cat "$(printf %q "$mark")" \
    2>&1)" != "${mark##*/}" ]; then
    say "$host: cannot read a file written to $fs on this host within $timeout s: the disk is not shared"
    [ $result != 0 ] || result=6
  fi
done
[ $result = 0 ] || exit $result

ranks=$(awk '{ sub(/#.*/, "") } NF { n = 1; for (i = 2; i <= NF; i++) if ($i ~ /^slots=[0-9]+$/) n = substr($i, 7)
  total += n } END { print total + 0 }' "$hostfile")
[[ $ranks =~ ^[1-9][0-9]{0,5}$ ]] || die "$hostfile has $ranks slots: expected 1 to 999999"
# As run.sh does.
start=(dtrain-mpirun --hostfile "$hostfile" -np "$ranks" --bind-to none -mca pml ob1 -mca btl '^openib'
  -mca btl_tcp_if_exclude 'lo,docker0' -mca oob_tcp_if_exclude 'lo,docker0'
  -x "NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-^lo,docker0}")
"${start[@]}" dtrain-info --ranks --device="$device" --expect_ranks="$ranks" --expect_hosts="${#hosts[@]}" ||
  exit $?
[ "$ranks" -gt 1 ] || exit 0
"${start[@]}" dtrain-allreduce-benchmark --device="$device" --expect_ranks="$ranks" --sizes=64M --iterations=3 \
  --warmup=1 --json_file="$mark.json" || exit $?
bandwidth=$(sed -n 's/^ *"bus_bandwidth": \([0-9.e+]*\).*/\1/p' "$mark.json")
[ -n "$bandwidth" ] || die "no bandwidth was measured" 4
awk -v found="$bandwidth" -v least="$least" 'BEGIN { exit !(found >= least * 1e9) }' ||
  die "the all-reduce bandwidth is $(awk -v found="$bandwidth" 'BEGIN { printf "%.3f", found / 1e9 }') GB/s, less than \
$least" 4
