#!/usr/bin/env bash
# Elastic training: runs on the current workers of a job and restarts when they change.
#     elastic.sh MIN MAX SLOTS [arguments of mpirun] PROGRAM [flags]
# Runs MIN to MAX ranks, SLOTS per worker. In the arguments {ranks} is replaced by the number of ranks and {micro_steps}
# by the gradient accumulation steps, so that each update uses MAX batches. The number of ranks divides MAX.
#   - Workers are listed by MPI Operator's discover_hosts.sh. When workers are added, or one in use is lost, the ranks
#     save a checkpoint, exit with 75, and restart on the new workers.
#   - After a failure of a rank or host (4, signals, mpirun's codes), waits up to DTRAIN_ELASTIC_SETTLE seconds (60) for
#     a change of the workers, then restarts. Gives up after ten failures in a row.
#   - SIGTERM and SIGINT stop the ranks for good with exit code 75. All other exit codes are the program's.
#   - Exits with 4 if fewer than MIN ranks can run for DTRAIN_WORKER_TIMEOUT seconds (300).
set -uo pipefail
say() { echo "elastic: $*" >&2; }
if [ $# -lt 4 ] || ! [[ "$1 $2 $3" =~ ^[1-9][0-9]{0,5}\ [1-9][0-9]{0,5}\ [1-9][0-9]{0,5}$ ]] || [ "$1" -gt "$2" ]; then
  say "usage: elastic.sh MIN MAX SLOTS [arguments of mpirun] PROGRAM [flags], MIN <= MAX"
  exit 1
fi
minimum=$1 maximum=$2 slots=$3
shift 3
discover=${DTRAIN_DISCOVER_HOSTS:-/etc/mpi/discover_hosts.sh}
timeout=${DTRAIN_WORKER_TIMEOUT:-300}
settle=${DTRAIN_ELASTIC_SETTLE:-60}
hostfile=$(mktemp) || exit 6
child=
asked=0
trap 'asked=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT
trap 'rm -f "$hostfile"' EXIT

# One host name per line; some operators append ":SLOTS".
workers() { sh "$discover" 2>/dev/null | head -c 1000000 | sed 's/[:[:space:]].*//; /^$/d' | sort -u; }

# The largest number of ranks that fits on the workers and divides MAX.
ranks_on() {
  local ranks=$((slots * $(grep -c . <<<"$1")))
  [ $ranks -le "$maximum" ] || ranks=$maximum
  while [ "$ranks" -gt 0 ] && [ $((maximum % ranks)) != 0 ]; do ranks=$((ranks - 1)); done
  echo "$ranks"
}

# Sets `found` and `ranks`.
await_workers() {
  local waited=0
  ranks=0
  until found=$(workers) && ranks=$(ranks_on "$found") && [ "$ranks" -ge "$minimum" ]; do
    [ $asked = 0 ] || exit 75
    if [ $waited = 0 ]; then say "$ranks ranks can run, waiting for $minimum, at most $timeout s"; fi
    if [ $waited -ge "$timeout" ]; then
      say "fewer than $minimum ranks can run for $timeout s (DTRAIN_WORKER_TIMEOUT)"
      exit 4
    fi
    sleep 1
    waited=$((waited + 1))
  done
}

# True if a restart helps: more ranks can run, or a worker in use is lost.
should_change() {
  local now
  now=$(workers) || return 1  # unknown
  [ "$(ranks_on "$now")" -gt "$ranks" ] || [ -n "$(comm -23 <(cut -d ' ' -f 1 "$hostfile" | sort) <(echo "$now"))" ]
}

# Sets `result`, mpirun's exit code, and `changing`, whether it was stopped because the workers changed.
train() {
  local arguments=("${@//\{ranks\}/$ranks}")
  head -n $(((ranks + slots - 1) / slots)) <<<"$found" |
    while read -r host; do echo "$host slots=$slots"; done >"$hostfile"
  say "$ranks ranks on $(cut -d ' ' -f 1 "$hostfile" | tr '\n' ' ')"
  changing=no
  dtrain-mpirun --hostfile "$hostfile" -np "$ranks" "${arguments[@]//\{micro_steps\}/$((maximum / ranks))}" &
  child=$!
  [ $asked = 0 ] || kill -TERM "$child"
  while kill -0 "$child" 2>/dev/null; do
    sleep 1
    if [ $changing = no ] && [ $asked = 0 ] && should_change; then
      say "the workers have changed: the ranks save a checkpoint and restart"
      changing=yes
      kill -TERM "$child" 2>/dev/null
    fi
  done
  wait "$child"
  result=$?
  child=
}

failures=0
while await_workers; do
  train "$@"
  [ $asked = 0 ] || exit $result
  if [ $result = 75 ]; then
    failures=0
    continue
  fi
  case $result in 0 | 1 | 2 | 3 | 5 | 6) exit $result ;; esac
  failures=$((failures + 1))
  say "the ranks ended with $result, failure $failures of 10"
  [ $failures -lt 10 ] || exit $result
  for ((waited = 0; waited < settle && asked == 0; waited++)); do
    if should_change; then break; fi
    sleep 1
  done
  [ $asked = 0 ] || exit 75
done
