{{/* A pod with dtrain-serve, TensorBoard and optionally Jupyter on its loopback interface, behind an nginx reverse
proxy with TLS and basic authentication. Input: the root. The model is named after the chart, without -jupyter. */}}
{{- define "dtrain.serving" -}}
{{- include "dtrain.serving-check" . -}}
{{- include "dtrain.not-supported" (dict "root" . "keys" (list "monitoring" "spot" "topology")) -}}
{{- $v := .Values -}}
{{- $type := $v.serve.gpu_instance_type | default $v.jupyter.gpu_instance_type -}}
{{- $_ := set $v.job "cpu" ($v.job.cpu | default (eq $type $v.serve.gpu_instance_type | ternary "4" "2")) -}}
{{- $gpus := eq $type $v.serve.gpu_instance_type | ternary $v.serve.gpus_per_node 1 -}}
{{- $instance := include "dtrain.instance" (dict "root" . "instance_type" $type "gpus" $gpus "key" "serve.gpu_instance_type" "single" true) | fromJson -}}
{{- $name := include "dtrain.name" (dict "root" . "workers" 1) -}}
{{- $namespace := include "dtrain.namespace" . -}}
{{- $files := .Subcharts.job.Files -}}
{{- $data := (or $v.serve.images $v.serve.annotations | empty | not) | ternary ($v.serve.data_pvc | default $v.global.shared_pvc) "" -}}
{{- $log_dir := printf "/%s/%s/train_log/maskrcnn" $v.global.shared_fs $v.global.log_dir -}}
{{- $secret := include "dtrain.serving-secret" . -}}
{{- $tls := $v.nginx.tls_secret | default (printf "%s-tls" $name) -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name | quote }}
  namespace: {{ $namespace | quote }}
  labels: {{- include "dtrain.labels" . | nindent 4 }}
type: Opaque
data:
  {{- $secret | nindent 2 }}
{{- if $v.nginx.issuer }}
{{- $issuer := splitList "/" $v.nginx.issuer }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ $name | quote }}
  namespace: {{ $namespace | quote }}
  labels: {{- include "dtrain.labels" . | nindent 4 }}
spec:
  secretName: {{ $tls | quote }}
  issuerRef: {group: cert-manager.io, kind: {{ first $issuer }}, name: {{ last $issuer | quote }}}
  dnsNames:
    {{- $hosts := list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) "localhost" }}
    {{- range $v.nginx.host_names | default $hosts }}
    - {{ . | quote }}
    {{- end }}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name | quote }}
  namespace: {{ $namespace | quote }}
  labels: {{- include "dtrain.labels" . | nindent 4 }}
data:
  nginx.conf: |
    {{- $files.Get "files/nginx.conf" | nindent 4 }}
  {{- if $v.jupyter.enabled }}
  jupyter.conf: |
    {{- $files.Get "files/jupyter.conf" | nindent 4 }}
  serving.ipynb: |
    {{- $files.Get "files/serving.ipynb" | nindent 4 }}
  {{- end }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name | quote }}
  namespace: {{ $namespace | quote }}
  labels: {{- include "dtrain.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {app.kubernetes.io/instance: {{ $name | quote }}}
  policyTypes: [Ingress]
  ingress:
    # From all addresses, since load balancers may hide client addresses; they enforce source_cidr.
    - ports:
        - {port: 8443}
        - {port: 9443}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name | quote }}
  namespace: {{ $namespace | quote }}
  labels: {{- include "dtrain.labels" . | nindent 4 }}
  annotations:
    # For the cloud provider of each EKS cluster; the next two are for AWS Load Balancer Controller, where it is installed.
    service.beta.kubernetes.io/aws-load-balancer-type: nlb
    service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: ip
    service.beta.kubernetes.io/aws-load-balancer-scheme: internet-facing
spec:
  type: LoadBalancer
  loadBalancerSourceRanges: [{{ $v.global.source_cidr | quote }}]
  selector: {app.kubernetes.io/instance: {{ $name | quote }}}
  ports:
    - {name: https, port: 443, targetPort: https}
    - {name: tensorboard, port: 6443, targetPort: tensorboard}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name | quote }}
  namespace: {{ $namespace | quote }}
  labels: {{- include "dtrain.labels" . | nindent 4 }}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels: {app.kubernetes.io/instance: {{ $name | quote }}}
  template:
    metadata:
      labels: {{- include "dtrain.pod-labels" (dict "root" . "name" $name "component" "server") | nindent 8 }}
      annotations:
        # nginx reads these files only at its start.
        {{- $annotations := dict "sidecar.istio.io/inject" "false" "checksum/secret" ($secret | sha256sum)
          "checksum/nginx" ($files.Get "files/nginx.conf" | sha256sum) }}
        {{- include "dtrain.added" (dict "key" "job.annotations" "own" $annotations "more" $v.job.annotations) | nindent 8 }}
    spec:
      {{- include "dtrain.pod-spec" . | nindent 6 }}
      {{- include "dtrain.placement" (dict "root" . "component" "server" "gpus" $instance.gpus "instance_type" $type) | nindent 6 }}
      containers:
        - name: serve
          image: {{ include "dtrain.image" (dict "root" . "image" $v.image "kind" $instance.image) | quote }}
          imagePullPolicy: {{ $v.image_pull_policy }}
          args:
            - dtrain-serve
            - --train_dir={{ $log_dir }}
            - --name={{ trimSuffix "-jupyter" .Chart.Name }}
            - --address=127.0.0.1
            - --port=8501
            - --max_body_mb=32
            {{- with $v.serve.images }}
            - --images=/data/{{ . }}
            {{- end }}
            {{- with $v.serve.annotations }}
            - --annotations=/data/{{ . }}
            {{- end }}
            {{- with $v.serve.extra_args }}{{ toYaml . | nindent 12 }}{{ end }}
          {{- if $v.job.env }}
          env: {{- include "dtrain.env" (dict "root" . "env" "") | nindent 12 }}
          {{- end }}
          livenessProbe:
            # The kubelet cannot probe the pod's loopback interface.
            exec:
              command: [bash, -c, 'exec 3<>/dev/tcp/127.0.0.1/8501 && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 && grep -q " 200 " <&3']
            initialDelaySeconds: 30
            periodSeconds: 30
            timeoutSeconds: 10
            failureThreshold: 10
          resources:
            requests: {cpu: {{ $instance.cpu | quote }}, memory: {{ $instance.memory }}{{ include "dtrain.ephemeral" . }}}
            limits:
              cpu: {{ $instance.cpu | quote }}
              memory: {{ $instance.memory }}
              {{- with $v.job.ephemeral_storage }}
              ephemeral-storage: {{ . | quote }}
              {{- end }}
              {{- if gt (int $instance.gpus) 0 }}
              nvidia.com/gpu: {{ int $instance.gpus }}
              {{- end }}
          {{- include "dtrain.confined" . | nindent 10 }}
          volumeMounts:
            {{- include "dtrain.scratch-mounts" . | nindent 12 }}
            - {name: results, mountPath: /{{ $v.global.shared_fs }}, readOnly: true}
            {{- if $data }}
            - {name: {{ ternary "results" "data" (eq $data $v.global.shared_pvc) }}, mountPath: /data, readOnly: true}
            {{- end }}
        - name: tensorboard
          image: {{ include "dtrain.image" (dict "root" . "image" $v.tensorboard.image) | quote }}
          imagePullPolicy: {{ $v.image_pull_policy }}
          command: [tensorboard, --logdir={{ $log_dir }}, --host=127.0.0.1, --port=6006]
          env:
            - {name: HOME, value: /tmp}
          resources:
            requests: {cpu: 500m, memory: 2Gi}
            limits: {cpu: 500m, memory: 2Gi}
          {{- include "dtrain.confined" . | nindent 10 }}
          volumeMounts:
            - {name: tensorboard, mountPath: /tmp}
            - {name: results, mountPath: /{{ $v.global.shared_fs }}, readOnly: true}
        - name: nginx
          image: {{ include "dtrain.image" (dict "root" . "image" $v.nginx.image) | quote }}
          imagePullPolicy: {{ $v.image_pull_policy }}
          command: [nginx, -e, stderr, -p, /tmp, -c, /etc/nginx/dtrain/nginx.conf]
          ports:
            - {name: https, containerPort: 8443}
            - {name: tensorboard, containerPort: 9443}
          readinessProbe:
            tcpSocket: {port: https}
            periodSeconds: 5
          livenessProbe:
            tcpSocket: {port: https}
            initialDelaySeconds: 30
            periodSeconds: 30
          resources:
            requests: {cpu: 250m, memory: 256Mi}
            limits: {cpu: 250m, memory: 256Mi}
          {{- include "dtrain.confined" . | nindent 10 }}
          volumeMounts:
            - {name: nginx, mountPath: /tmp}
            - {name: proxy, mountPath: /etc/nginx/dtrain, readOnly: true}
        {{- if $v.jupyter.enabled }}
        - name: jupyter
          image: {{ include "dtrain.image" (dict "root" . "image" $v.jupyter.image) | quote }}
          imagePullPolicy: {{ $v.image_pull_policy }}
          command:
            - jupyter
            - server
            - --no-browser
            - --ServerApp.ip=127.0.0.1
            - --ServerApp.port=8888
            - --ServerApp.port_retries=0
            - --ServerApp.base_url=/jupyter/
            - --ServerApp.default_url=/lab
            # nginx sets the Host header; the token protects against other origins.
            - --ServerApp.allow_remote_access=True
            - --ServerApp.root_dir=/tmp
          env:
            - {name: HOME, value: /tmp/home}
            - {name: JUPYTER_TOKEN_FILE, value: /etc/jupyter/dtrain/token}
            - {name: DTRAIN_SERVE_URL, value: "http://127.0.0.1:8501"}
            - {name: DTRAIN_SERVE_MODEL, value: {{ trimSuffix "-jupyter" .Chart.Name }}}
          resources:
            requests: {cpu: 500m, memory: 2Gi}
            limits: {cpu: 500m, memory: 2Gi}
          {{- include "dtrain.confined" . | nindent 10 }}
          volumeMounts:
            - {name: jupyter, mountPath: /tmp}
            - {name: notebooks, mountPath: /tmp/examples, readOnly: true}
            - {name: token, mountPath: /etc/jupyter/dtrain, readOnly: true}
            - {name: results, mountPath: /{{ $v.global.shared_fs }}, readOnly: true}
        {{- end }}
      volumes:
        {{- include "dtrain.scratch-volumes" . | nindent 8 }}
        - name: tensorboard
          emptyDir: {sizeLimit: 1Gi}
        - name: nginx
          # Request bodies of 64 connections.
          emptyDir: {sizeLimit: 3Gi}
        - name: proxy
          projected:
            defaultMode: 0440
            sources:
              - configMap:
                  name: {{ $name | quote }}
                  items:
                    - {key: nginx.conf, path: nginx.conf}
                    {{- if $v.jupyter.enabled }}
                    - {key: jupyter.conf, path: jupyter.conf}
                    {{- end }}
              - secret:
                  name: {{ $name | quote }}
                  items: [{key: htpasswd, path: htpasswd}]
              - secret:
                  name: {{ $tls | quote }}
                  items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
        - name: results
          persistentVolumeClaim: {claimName: {{ $v.global.shared_pvc | quote }}, readOnly: true}
        {{- if and $data (ne $data $v.global.shared_pvc) }}
        - name: data
          persistentVolumeClaim: {claimName: {{ $data | quote }}, readOnly: true}
        {{- end }}
        {{- if $v.jupyter.enabled }}
        - name: jupyter
          emptyDir: {sizeLimit: 4Gi}
        - name: notebooks
          configMap: {name: {{ $name | quote }}, items: [{key: serving.ipynb, path: serving.ipynb}]}
        - name: token
          {{- $token := eq $v.jupyter.token "" | ternary (printf "%s-token" $name) $name }}
          secret: {secretName: {{ $token | quote }}, defaultMode: 0440, items: [{key: token, path: token}]}
        {{- end }}
{{- end -}}

{{/* Fails for invalid values. Input: the root. */}}
{{- define "dtrain.serving-check" -}}
{{- $global := .Values.global -}}
{{- include "dtrain.check-folder" (printf "/%s" $global.shared_fs) -}}
{{- $hash := required "nginx.htpasswd is empty: expected a password hash, which `htpasswd -nB tensorboard` prints after the colon" .Values.nginx.htpasswd -}}
{{- if not (regexMatch "^(\\$apr1\\$[./0-9A-Za-z]{1,8}\\$[./0-9A-Za-z]{22}|\\$2[aby]\\$[0-9]{2}\\$[./0-9A-Za-z]{53}|\\$[56]\\$[^:\\s]{20,})$" $hash) -}}
{{- fail "nginx.htpasswd is not a password hash: expected the output of `htpasswd -nB tensorboard` after the colon, in single quotes" -}}
{{- end -}}
{{- $cidr := required "global.source_cidr is empty: expected the CIDR of the clients, such as 203.0.113.7/32" $global.source_cidr -}}
{{- $number := "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])" -}}
{{- if not (regexMatch (printf "^((%s\\.){3}%s/([12]?[0-9]|3[0-2])|[0-9a-fA-F:]*:[0-9a-fA-F:]*/([1-9]?[0-9]|1[01][0-9]|12[0-8]))$" $number $number) $cidr) -}}
{{- fail (printf "global.source_cidr is %s: expected a CIDR, such as 203.0.113.7/32" $cidr) -}}
{{- end -}}
{{- $_ := required "global.log_dir is empty: expected the folder of the training run on the claim, which contains train_log" $global.log_dir -}}
{{- if and .Values.serve.data_pvc (not .Values.serve.images) (not .Values.serve.annotations) -}}
{{- fail "serve.data_pvc needs serve.images or serve.annotations, paths on this claim" -}}
{{- end -}}
{{- if and .Values.nginx.host_names (not .Values.nginx.issuer) -}}
{{- fail "nginx.host_names are for a certificate of nginx.issuer, which is empty: name the hosts to k8s/serving-secret.sh, which creates the certificate otherwise" -}}
{{- end -}}
{{- end -}}

{{/* Data of the Secret: the htpasswd line, and an explicit Jupyter token. Nothing is generated, so that each rendering has
the same bytes: k8s/serving-secret.sh or cert-manager creates the certificate, and the script a token. Input: the root. */}}
{{- define "dtrain.serving-secret" -}}
htpasswd: {{ printf "%s:%s\n" .Values.nginx.user .Values.nginx.htpasswd | b64enc }}
{{- if and .Values.jupyter.enabled .Values.jupyter.token }}
token: {{ .Values.jupyter.token | b64enc }}
{{- end }}
{{- end -}}

{{/* Installation notes. Input: the root. */}}
{{- define "dtrain.serving-notes" -}}
{{- $name := .Release.Name -}}
{{- $ns := include "dtrain.namespace" . -}}
{{- $own := not (or .Values.nginx.tls_secret .Values.nginx.issuer) -}}
{{- $token := and .Values.jupyter.enabled (not .Values.jupyter.token) -}}
The model of {{ .Values.global.log_dir }} is served on port 443, TensorBoard on 6443, to {{ .Values.global.source_cidr }} only. Address of
the load balancer, and the log:
    kubectl get service {{ $name }} -n {{ $ns }}
    kubectl logs -f -n {{ $ns }} deployment/{{ $name }} -c serve
{{- if or $own $token }}
The pod starts once its Secrets exist, which are created once per release:
    k8s/serving-secret.sh {{ if not $own }}--token-only {{ end }}{{ $name }} {{ $ns }}
{{- end }}
Without a load balancer, use port-forwarding:
    kubectl port-forward -n {{ $ns }} service/{{ $name }} 8443:443 6443:6443
{{- if not .Values.nginx.tls_secret }}
The CA certificate, for `curl --cacert ca.crt -u {{ .Values.nginx.user }} https://localhost:8443/` and for browsers:
    kubectl get secret {{ $name }}-tls -n {{ $ns }} -o jsonpath='{.data.ca\.crt}' | base64 -d >ca.crt
{{- end }}
{{- if .Values.jupyter.enabled }}
Jupyter is at /jupyter/ on port 443 and also needs this token:
    kubectl get secret {{ $name }}{{ if $token }}-token{{ end }} -n {{ $ns }} -o jsonpath='{.data.token}' | base64 -d
{{- end }}
{{- end -}}
