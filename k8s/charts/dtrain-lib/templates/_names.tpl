{{/* The job's name, the release's name. Host names derive from it; the last worker's is the longest.
Input: root, workers (0 for a single-pod job). */}}
{{- define "dtrain.name" -}}
{{- $name := .root.Release.Name -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the release name %q becomes part of host names: expected lower-case letters, digits and hyphens, beginning with a letter" $name) -}}
{{- end -}}
{{- $last := printf "%s-worker-%d" $name (max 0 (sub (int .workers) 1)) -}}
{{- if gt (len $last) 63 -}}
{{- fail (printf "the release name is too long: the host name of the last worker, %s, has %d characters; 63 are allowed" $last (len $last)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Labels of all objects of a release. Input: the root. */}}
{{- define "dtrain.labels" -}}
app.kubernetes.io/name: dtrain
app.kubernetes.io/part-of: dtrain
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Namespace of the objects. Input: the root. */}}
{{- define "dtrain.namespace" -}}
{{- $namespace := (.Values.global).namespace | default .Release.Namespace -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" $namespace) -}}
{{- fail (printf "the namespace %q: expected at most 63 lower-case letters, digits and hyphens" $namespace) -}}
{{- end -}}
{{- $namespace -}}
{{- end -}}

{{/* The image: `image`, else dtrain's image for the devices. Input: root, image, gpus, instance_type. */}}
{{- define "dtrain.image" -}}
{{- $registry := (.root.Values.global).registry | default "" -}}
{{- range list (.image | default "") $registry -}}
{{- if not (regexMatch "^([A-Za-z0-9][-A-Za-z0-9._/:@+]*)?$" .) -}}
{{- fail (printf "%q is not an image or registry name: expected letters, digits and -._/:@+" .) -}}
{{- end -}}
{{- end -}}
{{- if .image -}}
{{- if or (hasSuffix ":latest" .image) (not (regexMatch "[@:][^/]+$" .image)) -}}
{{- fail (printf "image %s: expected a version or digest instead of latest" .image) -}}
{{- end -}}
{{- .image -}}
{{- else -}}
{{- $kind := "cpu" -}}
{{- if gt (int .gpus) 0 -}}
{{- /* CUDA 13 of the images cuda and efa does not support the V100 of p3 and p3dn. */ -}}
{{- $kind = ternary "cuda12" (gt (int .root.Values.job.efa) 0 | ternary "efa" "cuda") (hasPrefix "p3" (.instance_type | default "")) -}}
{{- end -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
dtrain-{{ $kind }}:{{ .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Nominal memory in GB of an instance type's GPU; empty for unknown types. */}}
{{- define "dtrain.gpu-memory" -}}
{{- $sizes := dict "g4dn" 16 "g5" 24 "g6" 24 "g6e" 48 "p3" 16 "p3dn" 32 "p4d" 40 "p4de" 80 "p5" 80 "p5e" 141 "p5en" 141 -}}
{{- get $sizes (. | default "" | splitList "." | first) -}}
{{- end -}}

{{/* The flag that reserves `reserve` MiB of each GPU for the system, like TF_DEVICE_MIN_SYS_MEMORY_IN_MB; empty for 0 or
without GPUs. Input: reserve, gpus, instance_type, memory (GB per GPU, for unknown types). */}}
{{- define "dtrain.memory-flag" -}}
{{- if and (gt (int .reserve) 0) (gt (int .gpus) 0) -}}
{{- $memory := .memory | default (include "dtrain.gpu-memory" .instance_type) -}}
{{- if not $memory -}}
{{- fail (printf "tf_device_min_sys_mem_mb: unknown GPU memory of instance type %s: set gpu_memory_gb, or tf_device_min_sys_mem_mb to 0" (.instance_type | default "" | quote)) -}}
{{- end -}}
{{- if ge (int .reserve) (mul 1024 (int $memory)) -}}
{{- fail (printf "tf_device_min_sys_mem_mb: %d MiB is not less than the GPU's %d GB" (int .reserve) (int $memory)) -}}
{{- end -}}
--gpu_memory_frac_for_testing={{ subf 1.0 (divf (float64 .reserve) (mulf 1024.0 (float64 $memory))) | printf "%.4f" }}
{{- end -}}
{{- end -}}
