{{/* Script of each node. Only the script gets SIGTERM; it forwards the signal and waits for the program. A signal before
the program's start is forwarded after it. */}}
{{- define "pytorchjob.script" -}}
#!/usr/bin/env bash
set -eu
child=
asked=
trap 'asked=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true' TERM
{{- if include "dtrain.script-output" . }}
mkdir -p "$OUTPUT_DIR"
{{- end }}
{{- if .Values.git.repo_url }}
cd /source/repository
{{- end }}
{{- range .Values.pre_script }}
{{ . }}
{{- end }}
{{ join " \\\n  " (concat .Values.train.command .Values.train.args) }} &
child=$!
[ -z "$asked" ] || kill -TERM "$child" 2>/dev/null || true
while kill -0 "$child" 2>/dev/null; do wait "$child" || true; done
result=0
wait "$child" || result=$?
{{- range .Values.post_script }}
{{ . }}
{{- end }}
exit $result
{{- end -}}

{{/* GPUs and resources of a node as JSON; all GPUs of node_type without a limit of GPUs. Input: the root. */}}
{{- define "pytorchjob.instance" -}}
{{- $type := .Values.resources.node_type -}}
{{- $gpus := get .Values.resources.limits "nvidia.com/gpu" | default (regexMatch "^[pg][0-9]" $type | ternary "" 0) -}}
{{- include "dtrain.instance" (dict "root" . "instance_type" $type "gpus" $gpus "key" "resources.node_type") -}}
{{- end -}}

{{/* Limits and requests of a node; EFA needs huge pages. Input: the root. */}}
{{- define "pytorchjob.resources" -}}
{{- $instance := include "pytorchjob.instance" . | fromJson -}}
{{- $limits := merge (dict) .Values.resources.limits (dict "cpu" $instance.cpu "memory" $instance.memory) -}}
{{- with .Values.job.ephemeral_storage }}{{ $limits = merge $limits (dict "ephemeral-storage" .) }}{{ end -}}
{{- if $instance.gpus -}}
{{- $limits = merge $limits (dict "nvidia.com/gpu" (int $instance.gpus)) -}}
{{- end -}}
{{- if $instance.efa -}}
{{- $limits = merge $limits (dict "vpc.amazonaws.com/efa" (int $instance.efa) "hugepages-2Mi" "5120Mi") -}}
{{- end -}}
{{- $requests := merge (dict) .Values.resources.requests (pick $limits "cpu" "memory" "hugepages-2Mi" "ephemeral-storage") -}}
limits: {{- toYaml $limits | nindent 2 }}
requests: {{- toYaml $requests | nindent 2 }}
{{- end -}}

{{/* Environment variables of a node. Input: the root. */}}
{{- define "pytorchjob.env" -}}
# The user has no passwd entry in the image.
- {name: HOME, value: /tmp}
- {name: USER, value: {{ .Values.job.user_name | quote }}}
{{- with include "dtrain.script-output" . }}
- {name: OUTPUT_DIR, value: {{ . | quote }}}
{{- end }}
{{- with .Values.train.env }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{/* The pod of a node. */}}
{{- define "pytorchjob.node" -}}
{{- $name := .Release.Name -}}
{{- $job := .Values.job -}}
{{- $instance := include "pytorchjob.instance" . | fromJson -}}
metadata:
  {{- include "dtrain.pod-metadata" (dict "root" . "name" $name "component" "training") | nindent 2 }}
spec:
  {{- include "dtrain.pod-spec" . | nindent 2 }}
  {{- include "dtrain.placement" (dict "root" . "component" "training" "gpus" $instance.gpus "instance_type" .Values.resources.node_type "tolerations" .Values.tolerations) | nindent 2 }}
  {{- if .Values.git.repo_url }}
  initContainers: {{- include "dtrain.clone" . | nindent 4 }}
  {{- end }}
  containers:
    # The operator requires this container name.
    - name: pytorch
      image: {{ include "dtrain.image" (dict "root" . "image" .Values.image) | quote }}
      imagePullPolicy: {{ .Values.image_pull_policy }}
      command: [bash, /etc/dtrain/job/train.sh]
      env:
        {{- include "dtrain.env" (dict "root" . "env" (include "pytorchjob.env" .)) | nindent 8 }}
      {{- if $job.monitoring }}
      ports:
        - {name: metrics, containerPort: 9400}
      {{- end }}
      resources: {{- include "pytorchjob.resources" . | nindent 8 }}
      {{- include "dtrain.confined" . | nindent 6 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: shm, mountPath: /dev/shm}
        {{- include "dtrain.script-mounts" . | trim | nindent 8 }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: 8Gi}
    - name: shm
      emptyDir: {medium: Memory, sizeLimit: {{ include "dtrain.shm" $instance }}}
    {{- include "dtrain.script-volumes" . | trim | nindent 4 }}
{{- end -}}
