{{/* What each rank runs. mpirun sends requests to stop (SIGUSR1) to the script and the program alike; the script waits
for the program to save. */}}
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

{{/* Clones the repository; the network of a node that has just come up may need a while. */}}
{{- define "mpijob.clone" -}}
- name: git
  image: {{ .Values.git.image }}
  imagePullPolicy: {{ .Values.image_pull_policy }}
  command: [sh, -ec]
  args:
    - |
      attempt=1
      until git clone ${BRANCH:+--branch "$BRANCH"} -- "$REPOSITORY" /source/repository; do
        [ $attempt -lt 6 ] || exit 1
        rm -rf /source/repository
        sleep $((attempt * 5))
        attempt=$((attempt + 1))
      done
      if [ -n "$COMMIT" ]; then git -C /source/repository checkout --detach "$COMMIT"; fi
  env:
    - {name: REPOSITORY, value: {{ .Values.git.repo_url | quote }}}
    - {name: BRANCH, value: {{ .Values.git.branch | quote }}}
    - {name: COMMIT, value: {{ .Values.git.commit | quote }}}
    - {name: HOME, value: /source}
  resources:
    requests: {cpu: 500m, memory: 512Mi}
    limits: {cpu: 500m, memory: 512Mi}
  {{- include "dtrain.confined" . | nindent 2 }}
  volumeMounts:
    - {name: source, mountPath: /source}
    - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "mpijob.volumes" -}}
- name: script
  configMap: {name: {{ .Release.Name }}-script}
{{- if .Values.git.repo_url }}
- name: source
  emptyDir: {sizeLimit: 2Gi}
{{- end }}
{{- range $i, $claim := .Values.pvc }}
- name: claim-{{ $i }}
  persistentVolumeClaim: {claimName: {{ .name }}{{ if .read_only }}, readOnly: true{{ end }}}
{{- end }}
{{- end -}}
{{- define "mpijob.mounts" -}}
- {name: script, mountPath: /etc/dtrain/job, readOnly: true}
{{- if .Values.git.repo_url }}
- {name: source, mountPath: /source}
{{- end }}
{{- range $i, $claim := .Values.pvc }}
- {name: claim-{{ $i }}, mountPath: {{ .mount_path }}{{ if .read_only }}, readOnly: true{{ end }}}
{{- end }}
{{- end -}}
