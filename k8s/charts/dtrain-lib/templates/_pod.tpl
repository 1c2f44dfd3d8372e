{{/* Annotations of a job, and of its immutable script, with which Argo CD deletes and submits them again after a change; see
k8s/components/gitops. Input: the root. */}}
{{- define "dtrain.resubmit" -}}
{{- if .Values.job.gitops -}}
annotations: {argocd.argoproj.io/sync-options: "Force=true,Replace=true"}
{{- end -}}
{{- end -}}

{{- define "dtrain.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Writable emptyDir mounts of a pod. */}}
{{- define "dtrain.scratch-mounts" -}}
- {name: run, mountPath: /run/dtrain}
- {name: tmp, mountPath: /tmp}
{{- end -}}
{{- define "dtrain.scratch-volumes" -}}
- name: run
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
{{- end -}}

{{/* Fails for a mount path of results that would hide files of the image or another mount. Input: its path. */}}
{{- define "dtrain.check-folder" -}}
{{- if has . (list "/bin" "/boot" "/data" "/dev" "/etc" "/lib" "/lib64" "/proc" "/run" "/sbin" "/sys" "/tmp" "/usr" "/var") -}}
{{- fail (printf "global.shared_fs: a claim mounted at %s would hide files of the image" .) -}}
{{- end -}}
{{- end -}}

{{/* Volumes and mounts of the claims for results and (read-only) data. Input: output_claim, output_path, data_claim,
data_path; without a claim the volume is omitted. Data on the claim of the results shares its volume, because kubelets
do not mount a claim twice. */}}
{{- define "dtrain.claim-volumes" -}}
{{- if .output_claim }}
- name: output
  persistentVolumeClaim: {claimName: {{ .output_claim | quote }}}
{{- end }}
{{- if and .data_claim (ne .data_claim .output_claim) }}
- name: data
  persistentVolumeClaim: {claimName: {{ .data_claim | quote }}, readOnly: true}
{{- end }}
{{- end -}}
{{- define "dtrain.claim-mounts" -}}
{{- include "dtrain.check-folder" .output_path -}}
{{- if .output_claim }}
- {name: output, mountPath: {{ .output_path }}}
{{- end }}
{{- if .data_claim }}
- {name: {{ ternary "output" "data" (eq .data_claim .output_claim) }}, mountPath: {{ .data_path }}, readOnly: true}
{{- end }}
{{- end -}}
