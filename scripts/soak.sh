#!/usr/bin/env bash
# Soaks the programs of a build: disturbs them at random for a while, and checks that nothing is lost.
#     scripts/soak.sh [--hours H | --minutes M] [--seed N] [--out FILE] [--bin DIR]
#     scripts/soak.sh --server ...      dtrain-serve under mixed good and hostile load, in place of a training
# A training is killed, stopped, starved of disk and memory, and started again with other numbers of ranks, for 45
# minutes by default; its weights have to be those of an undisturbed one. FILE (soak-seed1.jsonl) has JSON Lines: what
# was done, the counts so far each minute, and a verdict. The seed (1) draws the faults. A soak that was killed
# goes on by the same command. The programs are those of DIR (build/bin). More flags, of trainings:
#     --steps N       of one training (300): it takes one or two minutes where nothing disturbs it
#     --faults A,B    these alone, of those that FILE lists
#     --commit TEXT   what the programs were built from, for FILE; by default the commit of this tree
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
