{{/* Templates of charts that run a script from the values git, pvc and image_pull_policy. Input of all: the root.

Clones the repository with retries, since the network of a new node may not be ready. */}}
{{- define "dtrain.clone" -}}
- name: git
  image: {{ include "dtrain.image" (dict "root" . "image" .Values.git.image) | quote }}
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

{{- define "dtrain.script-volumes" -}}
- name: script
  configMap: {name: {{ printf "%s-script" .Release.Name | quote }}}
{{- if .Values.git.repo_url }}
- name: source
  emptyDir: {sizeLimit: 2Gi}
{{- end }}
{{- range $i, $claim := .Values.pvc }}
- name: claim-{{ $i }}
  persistentVolumeClaim: {claimName: {{ .name | quote }}{{ if .read_only }}, readOnly: true{{ end }}}
{{- end }}
{{- end -}}
{{- define "dtrain.script-mounts" -}}
- {name: script, mountPath: /etc/dtrain/job, readOnly: true}
{{- if .Values.git.repo_url }}
- {name: source, mountPath: /source}
{{- end }}
{{- range $i, $claim := .Values.pvc }}
- {name: claim-{{ $i }}, mountPath: {{ .mount_path }}{{ if .read_only }}, readOnly: true{{ end }}}
{{- end }}
{{- end -}}

{{/* The release's folder on the first writable claim, or empty. */}}
{{- define "dtrain.script-output" -}}
{{- $output := "" -}}
{{- range .Values.pvc -}}{{- if and (not .read_only) (not $output) -}}{{- $output = printf "%s/%s" .mount_path $.Release.Name -}}{{- end -}}{{- end -}}
{{- $output -}}
{{- end -}}

{{- define "dtrain.script-checks" -}}
{{- $taken := list "/tmp" "/dev" "/dev/shm" "/etc" "/etc/dtrain" "/etc/dtrain/job" "/proc" "/run" "/run/dtrain" "/source" "/sys" -}}
{{- range .Values.pvc -}}
{{- if has .mount_path $taken -}}
{{- fail (printf "pvc: mount_path %s is used by another claim, or hides files of the image" .mount_path) -}}
{{- end -}}
{{- $taken = append $taken .mount_path -}}
{{- end -}}
{{- if and .Values.git.repo_url (not .Values.git.image) -}}
{{- fail "git.repo_url needs git.image, an image with git: the pods' own may have none" -}}
{{- end -}}
{{- end -}}

{{/* Fails for duplicate environment variables, of which Kubernetes would use the last. Input: key (of the values),
variables (a list), taken (names that the chart sets). */}}
{{- define "dtrain.variables-once" -}}
{{- $taken := .taken -}}
{{- range .variables -}}
{{- if has .name $taken -}}
{{- fail (printf "%s: %s is set twice, or set by the chart" $.key .name) -}}
{{- end -}}
{{- $taken = append $taken .name -}}
{{- end -}}
{{- end -}}
