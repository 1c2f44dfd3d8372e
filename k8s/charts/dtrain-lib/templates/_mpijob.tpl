{{/* An MPIJob and its NetworkPolicy, as in k8s/base.
Input:
  root
  workers              the number of pods
  instance             GPUs, resources and image of each, from dtrain.instance; without GPUs each has one rank on its
                       processors
  gpus_in_all          a number to compare with, or nothing
  image, pull_policy, backoff_limit, instance_type, if_exclude, nccl_socket_ifname, nccl_debug
  args                 of the launcher, from dtrain-mpirun on
  launcher_env         more variables of the launcher, as a list
  worker_env           more variables of workers, which their ranks inherit
  logs                 the launcher's log: claim, mount_path, folder; or nothing
  init_containers      of workers
  volumes, mounts      of workers, as text */}}
{{- define "dtrain.mpijob" -}}
{{- $instance := .instance -}}
{{- $gpus := int $instance.gpus -}}
{{- $slots := max 1 $gpus -}}
{{- $ranks := mul (int .workers) $slots -}}
{{- $name := include "dtrain.name" (dict "root" .root "workers" .workers) -}}
{{- $image := include "dtrain.image" (dict "root" .root "image" .image "kind" $instance.image) -}}
{{- $job := .root.Values.job -}}
{{- if and .gpus_in_all (ne (int .gpus_in_all) (int $ranks)) -}}
{{- fail (printf "gpus is %d, but gpu_nodes x gpus_per_node is %d: omit gpus, which is computed" (int .gpus_in_all) $ranks) -}}
{{- end -}}
{{- if and $instance.efa (not .image) (eq $instance.image "cuda12") -}}
{{- fail (printf "job.efa is %d, but the image dtrain-cuda12 of %s has no EFA: set job.efa to 0, or image" (int $instance.efa) .instance_type) -}}
{{- end -}}
{{- include "dtrain.refuse-change" (dict "root" .root "name" $name "args" .args "workers" .workers) -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name | quote }}
  namespace: {{ include "dtrain.namespace" .root | quote }}
  labels: {{- include "dtrain.labels" .root | nindent 4 }}
spec:
  podSelector:
    matchLabels: {app.kubernetes.io/instance: {{ $name | quote }}}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels: {app.kubernetes.io/instance: {{ $name | quote }}}
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: {{ $name | quote }}
  namespace: {{ include "dtrain.namespace" .root | quote }}
  labels:
    {{- include "dtrain.labels" .root | nindent 4 }}
    {{- with $job.queue }}
    kueue.x-k8s.io/queue-name: {{ . | quote }}
    {{- end }}
  {{- with include "dtrain.resubmit" .root }}{{ . | nindent 2 }}{{ end }}
spec:
  slotsPerWorker: {{ $slots }}
  mpiImplementation: OpenMPI
  sshAuthMountPath: /etc/dtrain/ssh
  launcherCreationPolicy: WaitForWorkersReady
  runPolicy:
    cleanPodPolicy: Running
    {{- if not $job.gitops }}
    ttlSecondsAfterFinished: {{ $job.ttl_seconds_after_finished | int64 }}
    {{- end }}
    activeDeadlineSeconds: {{ $job.active_deadline_seconds | int64 }}
    backoffLimit: {{ .backoff_limit | int64 }}
    {{- if $job.suspend }}
    suspend: true
    {{- end }}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata:
          {{- include "dtrain.pod-metadata" (dict "root" .root "name" $name "component" "launcher") | nindent 10 }}
        spec:
          {{- include "dtrain.pod-spec" .root | nindent 10 }}
          {{- include "dtrain.placement" (dict "root" .root "component" "launcher") | nindent 10 }}
          containers:
            - name: launcher
              image: {{ $image | quote }}
              imagePullPolicy: {{ .pull_policy }}
              args: {{- toYaml .args | nindent 16 }}
              env:
                {{- include "dtrain.env" (dict "root" .root "env" (include "dtrain.launcher-env" (merge (dict "name" $name "slots" $slots "ranks" $ranks) .))) | nindent 16 }}
              {{- if $job.monitoring }}
              ports:
                - {name: metrics, containerPort: 9400}
              {{- end }}
              resources:
                requests: {cpu: 500m, memory: 1Gi{{ include "dtrain.ephemeral" .root }}}
                limits: {cpu: 500m, memory: 1Gi{{ include "dtrain.ephemeral" .root }}}
              {{- include "dtrain.confined" . | nindent 14 }}
              volumeMounts:
                {{- include "dtrain.scratch-mounts" . | nindent 16 }}
                {{- with .logs }}
                - {name: output, mountPath: {{ .mount_path }}}
                {{- end }}
          volumes:
            {{- include "dtrain.scratch-volumes" . | nindent 12 }}
            {{- with .logs }}
            - name: output
              persistentVolumeClaim: {claimName: {{ .claim | quote }}}
            {{- end }}
    Worker:
      replicas: {{ int .workers }}
      restartPolicy: Never
      template:
        metadata:
          {{- include "dtrain.pod-metadata" (dict "root" .root "name" $name "component" "worker") | nindent 10 }}
        spec:
          {{- include "dtrain.pod-spec" .root | nindent 10 }}
          {{- include "dtrain.placement" (dict "root" .root "component" "worker" "gpus" $gpus "instance_type" .instance_type) | nindent 10 }}
          {{- with .init_containers }}
          initContainers: {{- . | nindent 12 }}
          {{- end }}
          containers:
            - name: worker
              image: {{ $image | quote }}
              imagePullPolicy: {{ .pull_policy }}
              args: [sshd]
              env:
                {{- include "dtrain.env" (dict "root" .root "env" (include "dtrain.worker-env" .)) | nindent 16 }}
              ports:
                - {name: ssh, containerPort: 2222}
                {{- if $job.monitoring }}
                - {name: metrics, containerPort: 9400}
                {{- end }}
              readinessProbe:
                tcpSocket: {port: ssh}
                initialDelaySeconds: 1
                periodSeconds: 5
              livenessProbe:
                tcpSocket: {port: ssh}
                initialDelaySeconds: 30
                periodSeconds: 30
                failureThreshold: 10
              resources:
                requests:
                  cpu: {{ $instance.cpu | quote }}
                  memory: {{ $instance.memory }}
                  {{- with $job.ephemeral_storage }}
                  ephemeral-storage: {{ . | quote }}
                  {{- end }}
                  {{- if $instance.efa }}
                  hugepages-2Mi: 5120Mi
                  {{- end }}
                limits:
                  cpu: {{ $instance.cpu | quote }}
                  memory: {{ $instance.memory }}
                  {{- with $job.ephemeral_storage }}
                  ephemeral-storage: {{ . | quote }}
                  {{- end }}
                  {{- if gt $gpus 0 }}
                  nvidia.com/gpu: {{ $gpus }}
                  {{- end }}
                  {{- if $instance.efa }}
                  vpc.amazonaws.com/efa: {{ int $instance.efa }}
                  hugepages-2Mi: 5120Mi
                  {{- end }}
              {{- include "dtrain.confined" . | nindent 14 }}
              volumeMounts:
                {{- include "dtrain.scratch-mounts" . | nindent 16 }}
                - {name: shm, mountPath: /dev/shm}
                {{- with .mounts }}{{ . | trim | nindent 16 }}{{ end }}
          volumes:
            {{- include "dtrain.scratch-volumes" . | nindent 12 }}
            - name: shm
              emptyDir: {medium: Memory, sizeLimit: {{ include "dtrain.shm" $instance }}}
            {{- with .volumes }}{{ . | trim | nindent 12 }}{{ end }}
{{- include "dtrain.spot-budget" (dict "root" .root "name" $name) }}
{{- include "dtrain.monitoring" (dict "root" .root "name" $name) }}
{{- end -}}

{{/* Environment variables of the launcher. Input: that of dtrain.mpijob, and name, slots, ranks. */}}
{{- define "dtrain.launcher-env" -}}
- {name: USER_NAME, value: {{ .root.Values.job.user_name | quote }}}
- {name: GROUP_NAME, value: {{ .root.Values.job.group_name | quote }}}
- {name: SLOTS, value: {{ .slots | quote }}}
- {name: RANKS, value: {{ .ranks | quote }}}
- {name: JOB_NAME, value: {{ .name | quote }}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: DTRAIN_WORKER_TIMEOUT, value: {{ .root.Values.job.worker_timeout | int64 | quote }}}
- {name: OMPI_MCA_oob_tcp_keepalive_time, value: "5"}
- {name: OMPI_MCA_oob_tcp_keepalive_intvl, value: "2"}
- {name: OMPI_MCA_oob_tcp_keepalive_probes, value: "3"}
- {name: OMPI_MCA_orte_tag_output, value: "true"}
- {name: OMPI_MCA_orte_timestamp_output, value: "true"}
- {name: OMPI_MCA_btl_tcp_if_exclude, value: {{ .if_exclude | quote }}}
- {name: OMPI_MCA_oob_tcp_if_exclude, value: {{ .if_exclude | quote }}}
- {name: OMPI_MCA_plm_rsh_no_tree_spawn, value: "true"}
{{- if .instance.efa }}
- {name: OMPI_MCA_pml, value: "^ucx"}
- {name: OMPI_MCA_btl, value: "tcp,self"}
{{- end }}
{{- with .launcher_env }}{{ toYaml . | nindent 0 }}{{ end }}
{{- with .logs }}
- {name: DTRAIN_LOG_DIR, value: {{ .folder | quote }}}
{{- end }}
{{- end -}}

{{/* Environment variables of workers. Input: that of dtrain.mpijob. */}}
{{- define "dtrain.worker-env" -}}
- {name: USER_NAME, value: {{ .root.Values.job.user_name | quote }}}
- {name: GROUP_NAME, value: {{ .root.Values.job.group_name | quote }}}
{{- if gt (int .instance.gpus) 0 }}
- {name: NCCL_SOCKET_IFNAME, value: {{ .nccl_socket_ifname | quote }}}
- {name: NCCL_DEBUG, value: {{ .nccl_debug | quote }}}
{{- end }}
{{- if .instance.efa }}
- {name: FI_PROVIDER, value: efa}
- {name: NCCL_NET, value: AWS Libfabric}
{{- end }}
{{- with .worker_env }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{/* Fails an upgrade that changes the command or workers of a job, which are immutable. An upgrade can suspend and
resume a job. Input: root, name, args, workers. */}}
{{- define "dtrain.refuse-change" -}}
{{- if .root.Release.IsUpgrade -}}
{{- $there := lookup "kubeflow.org/v2beta1" "MPIJob" (include "dtrain.namespace" .root) .name -}}
{{- if $there -}}
{{- $specs := $there.spec.mpiReplicaSpecs -}}
{{- $launcher := first $specs.Launcher.template.spec.containers -}}
{{- if or (ne (toJson $launcher.args) (toJson .args)) (ne (int $specs.Worker.replicas) (int .workers)) -}}
{{- fail (printf "command and workers of a submitted job are immutable; submit it again: helm uninstall %s --wait --cascade foreground, then helm install" .root.Release.Name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Installation notes. Input: root, logs (folder of results on the claim), claim. */}}
{{- define "dtrain.notes" -}}
{{- $name := .root.Release.Name -}}
{{- $ns := include "dtrain.namespace" .root -}}
The job {{ $name }} is submitted in the namespace {{ $ns }}.

Status and events:
    kubectl describe mpijob {{ $name }} -n {{ $ns }}
    kubectl get pods -n {{ $ns }} -l training.kubeflow.org/job-name={{ $name }}
Follow the log, once the workers are running:
    kubectl logs -f -n {{ $ns }} job/{{ $name }}-launcher
{{- with .logs }}
Checkpoints, event files and the logs of all ranks are in {{ . }} of the claim {{ $.claim }}. They are kept when the
release is uninstalled, and the next installation with the same name resumes from the newest checkpoint.
{{- end }}
Suspend it after a checkpoint, or resume it:
    helm upgrade {{ $name }} CHART -n {{ .root.Release.Namespace }} --reuse-values --set job.suspend=true      # or false
Run it again with other values:
    helm uninstall {{ $name }} -n {{ .root.Release.Namespace }} --wait --cascade foreground && helm install {{ $name }} CHART ...
{{- end -}}
