{{/* Script of each rank. mpirun sends SIGUSR1 to the script and the program; the script waits until the program has
saved a checkpoint. */}}
{{- define "mpijob.script" -}}
#!/usr/bin/env bash
set -eu
trap : USR1
if [ "${OMPI_COMM_WORLD_SIZE:-1}" != "$RANKS" ]; then
  echo "train.sh: expected $RANKS ranks, found ${OMPI_COMM_WORLD_SIZE:-1}" >&2
  exit 1
fi
{{- if .Values.git.repo_url }}
cd /source/repository
{{- end }}
{{- range .Values.pre_script }}
{{ . }}
{{- end }}
result=0
{{ join " \\\n  " (concat .Values.train.command .Values.train.args) }} || result=$?
{{- range .Values.post_script }}
{{ . }}
{{- end }}
exit $result
{{- end -}}
