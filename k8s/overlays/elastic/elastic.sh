#!/usr/bin/env bash
# Trains on the workers that a job has at the moment, and goes on with others when they change:
#     elastic.sh MIN MAX SLOTS [arguments of mpirun] PROGRAM [flags]
# from MIN to MAX ranks, SLOTS on each worker. In the arguments {ranks} is the number of ranks and {micro_steps} that of
# batches per update, so that each update is of MAX batches: the number of ranks is a divisor of MAX.
#   - The workers are those that mpi-operator's discover_hosts.sh names. When there are more to use, or one of those in
#     use is gone, the ranks save a checkpoint, end with 75, and start again on the new workers.
#   - Where a rank or a host fails (4, signals, mpirun's own codes) training starts again, too, after at most
#     DTRAIN_ELASTIC_SETTLE seconds (60) in which the workers may change; ten failures in a row are the end.
#   - SIGTERM and SIGINT stop the ranks for good: 75. All other exit codes are the program's.
#   - Where there are fewer than MIN ranks for DTRAIN_WORKER_TIMEOUT seconds (300), the exit code is 4.
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

# One name a line; some operators put ":SLOTS" after it.
workers() { sh "$discover" 2>/dev/null | head -c 1000000 | sed 's/[:[:space:]].*//; /^$/d' | sort -u; }

# The most ranks that the workers hold and that share MAX batches evenly.
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
    if [ $waited = 0 ]; then say "$ranks ranks can run, awaiting $minimum, $timeout s at most"; fi
    if [ $waited -ge "$timeout" ]; then
      say "fewer than $minimum ranks can run for $timeout s (DTRAIN_WORKER_TIMEOUT)"
      exit 4
    fi
    sleep 1
    waited=$((waited + 1))
  done
}

# Whether it is better to start again: more ranks can run, or a worker in use is gone.
should_change() {
  local now
  now=$(workers) || return 1  # nobody knows
  [ "$(ranks_on "$now")" -gt "$ranks" ] || [ -n "$(comm -23 <(cut -d ' ' -f 1 "$hostfile" | sort) <(echo "$now"))" ]
}

# Sets `result`, mpirun's exit code, and `changing`, whether it was stopped for other workers.
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
      say "the workers have changed: the ranks save and start again"
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
