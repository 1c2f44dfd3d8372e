#!/usr/bin/env bash
# Soak test of built programs: injects random faults and checks that no state is lost.
#     scripts/soak.sh [--hours H | --minutes M] [--seed N] [--out FILE] [--bin DIR]
#     scripts/soak.sh --server ...      tests dtrain-serve under mixed valid and hostile load instead of a training
# Kills and stops a training, lets its disk or memory run out, and restarts it with other numbers of ranks, for 45
# minutes by default. Its weights must equal the weights of a run without faults. FILE (default soak-seed1.jsonl) gets
# JSON Lines: faults, counters once a minute, and a verdict. The seed (default 1) selects the faults. A soak test that
# was killed resumes with the same command. DIR (default build/bin) has the programs. More flags for trainings:
#     --steps N       steps of one training (default 300, one or two minutes without faults)
#     --faults A,B    only these faults, of the list in FILE
#     --commit TEXT   commit of the programs, written to FILE; default: the commit of this tree
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
usage() { sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//p}' "$0"; }

minutes=45 seed=1 out="" bin=$root/build/bin server="" options=()
commit=$(git -C "$root" describe --always --dirty 2>/dev/null) || commit=unknown
while [ $# != 0 ]; do
  option=$1
  shift
  case $option in
    --help) usage; exit ;;
    --server) server=yes; continue ;;
    *=*) value=${option#*=} option=${option%%=*} ;;
    *)
      [ $# != 0 ] || { echo "$0: $option: expected a value" >&2; exit 1; }
      value=$1
      shift
      ;;
  esac
  case $option in
    --hours) minutes=$(awk -v hours="$value" 'BEGIN { print hours * 60 }') ;;
    --minutes) minutes=$value ;;
    --seed) seed=$value ;;
    --out) out=$value ;;
    --bin) bin=$value ;;
    --commit) commit=$value ;;
    --steps | --faults) options+=("$option" "$value") ;;
    *) echo "$0: unknown option $option; see --help" >&2; exit 1 ;;
  esac
done
bin=$(cd "$bin" && pwd)
if [ -n "$server" ]; then
  [ ${#options[@]} = 0 ] || { echo "$0: ${options[0]} is for trainings, not for --server" >&2; exit 1; }
  minutes=$(awk -v minutes="$minutes" 'BEGIN { print int(minutes + 0.999) }')
  exec "$root/scripts/soak_server.py" --bin "$bin" --out "${out:-soak-server-seed$seed.jsonl}" \
    --minutes "$minutes" --seed "$seed"
fi
export DTRAIN_BIN_DIR=$bin
exec python3 -B "$root/tests/distributed/soak.py" --minutes "$minutes" --seed "$seed" \
  --out "${out:-soak-seed$seed.jsonl}" --commit "$commit" "${options[@]}"
