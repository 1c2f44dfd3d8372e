#!/usr/bin/env bash
# Tests k8s/overlays/elastic/elastic.sh with a fake mpirun and fake workers: elastic_test.sh SOURCE_DIR
set -uo pipefail
elastic=$1/k8s/overlays/elastic/elastic.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
cd "$work" || exit
mkdir bin
export PATH=$work/bin:$PATH
export DTRAIN_DISCOVER_HOSTS=$work/discover_hosts.sh DTRAIN_ELASTIC_SETTLE=1 DTRAIN_WORKER_TIMEOUT=2
# Logs its arguments and hosts, waits for the file `end`, which contains its exit code, and exits with 75 on SIGTERM.
cat >bin/dtrain-mpirun <<'FAKE'
#!/usr/bin/env bash
trap 'echo stopped >>log; exit 75' TERM
echo "$* on $(cut -d ' ' -f 1 "$2" | tr '\n' ' ')" >>log
until [ -e end ]; do sleep 0.1; done
code=$(cat end)
rm -f end
exit "$code"
FAKE
chmod +x bin/dtrain-mpirun

# Renames files into place, so that readers never see partial content.
workers() { printf 'echo %s\n' "$@" >new && mv new discover_hosts.sh; }
end_with() { echo "$1" >new && mv new end; }  # CODE of the fake mpirun
begin() {  # the arguments of elastic.sh
  rm -f log end
  bash "$elastic" "$@" 2>said &
  pid=$!
}
await() {  # TEXT [COUNT]: waits at most a minute for COUNT lines of the log (default 1)
  local looks found
  for ((looks = 0; looks < 600; looks++)); do
    found=$(grep -cs -- "$1" log)
    if [ "${found:-0}" -ge "${2:-1}" ]; then return; fi
    sleep 0.1
  done
  echo "no '$1' in:"
  cat log said
  failures=$((failures + 1))
}
ends() {  # CODE
  local code
  wait "$pid"
  code=$?
  [ $code = "$1" ] && return
  echo "exit code $code, expected $1:"
  cat log said
  failures=$((failures + 1))
}
command=(-map-by slot program '--expect_ranks={ranks}' '--gradient_accumulation={micro_steps}')

# Workers come and go. Three workers do not divide four ranks' batch, two do.
workers a:2
begin 2 8 2 "${command[@]}"
await '-np 2 -map-by slot program --expect_ranks=2 --gradient_accumulation=4 on a $'
workers a b c
await 'stopped'
await '-np 4 .*--expect_ranks=4 --gradient_accumulation=2 on a b $'
workers a b c d
await '-np 8 .*--expect_ranks=8 --gradient_accumulation=1 on a b c d $'
workers a b c d e
sleep 2
workers a b d e
await '-np 8 .* on a b d e $'
end_with 0
ends 0
[ "$(grep -c stopped log)" = 3 ] || { echo "expected three stops"; cat log; failures=$((failures + 1)); }

# A dead rank restarts the training. Errors that a restart would not fix end the job.
begin 2 8 2 "${command[@]}"
await ' on a b d e $'
end_with 137
await ' on ' 2
end_with 5
ends 5
[ "$(grep -c ' on ' log)" = 2 ] || { echo "no restart after 137"; failures=$((failures + 1)); }

# SIGTERM ends the job.
begin 2 8 2 "${command[@]}"
await ' on a b d e $'
kill -TERM "$pid"
ends 75

# Too few workers, and invalid arguments.
workers a
begin 4 8 2 "${command[@]}"
ends 4
begin 4 2 2 program
ends 1
begin x 2 2 program
ends 1

[ $failures = 0 ] || exit 1
echo "all as expected"
