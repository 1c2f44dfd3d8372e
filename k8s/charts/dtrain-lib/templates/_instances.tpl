{{/* The lines of k8s/instance-types.csv, joined by newlines. Input: the root. */}}
{{- define "dtrain.instance-table" -}}
{{- .Subcharts.job.Files.Get "files/instance-types.csv" | required "files/instance-types.csv of the chart dtrain-lib is missing" | trim -}}
{{- end -}}

{{/* The row of an instance type as JSON, {} for an unknown type. Input: root, instance_type. */}}
{{- define "dtrain.instance-row" -}}
{{- $lines := include "dtrain.instance-table" .root | splitList "\n" -}}
{{- $row := dict -}}
{{- range rest $lines -}}
{{- $values := splitList "," . -}}
{{- if eq (first $values) $.instance_type -}}
{{- range $at, $column := first $lines | splitList "," }}{{ $_ := set $row $column (index $values $at) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toJson $row -}}
{{- end -}}

{{/* A quantity such as 32Gi in KiB; 0 for other units. Input: the quantity. */}}
{{- define "dtrain.kib" -}}
{{- $unit := dict "Ki" 1 "Mi" 1024 "Gi" 1048576 "Ti" 1073741824 -}}
{{- mul (regexFind "^[0-9]+" (toString .) | int64) (get $unit (regexFind "[KMGT]i$" (toString .)) | default 0) -}}
{{- end -}}

{{/* GPUs, resources and image of a worker as JSON: explicit values, else those of the instance type, else those of a node
with eight GPUs. Keys: gpus, cpu, memory, shm, efa, image (KIND of dtrain-KIND), gpu_memory (GiB; "" if unknown).
Input: root, instance_type, gpus ("": all), key (of these values, for messages), single (true: a single pod, no EFA). */}}
{{- define "dtrain.instance" -}}
{{- $job := .root.Values.job -}}
{{- $type := .instance_type | default "" -}}
{{- $row := include "dtrain.instance-row" (dict "root" .root "instance_type" $type) | fromJson -}}
{{- $all := not (has (toString .gpus) (list "" "<nil>")) | ternary .gpus (get $row "gpus" | default 8) -}}
{{- $gpus := int $all -}}
{{- if and $type (not $row) (or (gt $gpus 0) (regexMatch "^[pg][0-9]" $type)) -}}
{{- $names := regexFindAll "(?m)^[^,\n]+" (include "dtrain.instance-table" .root) -1 | rest -}}
{{- fail (printf "%s: unknown instance type %s: expected one of %s" .key $type (join " " $names)) -}}
{{- end -}}
{{- if and $row (gt $gpus (int $row.gpus)) -}}
{{- fail (printf "%s: %d GPUs per node, but %s has %s" .key $gpus $type $row.gpus) -}}
{{- end -}}
{{- $efa := 0 -}}
{{- if and $row (eq $row.image "efa") (gt $gpus 0) (not .single) }}{{ $efa = int $row.efa_interfaces }}{{ end -}}
{{- if not (has (toString $job.efa) (list "" "<nil>")) }}{{ $efa = int $job.efa }}{{ end -}}
{{- if and $row (gt $efa (int $row.efa_interfaces)) -}}
{{- fail (printf "job.efa is %d, but %s has %s EFA interfaces" $efa $type $row.efa_interfaces) -}}
{{- end -}}
{{- if and $row (regexMatch "^[0-9]+$" (toString $job.cpu)) (ge (int $job.cpu) (get $row "vcpus" | int)) -}}
{{- fail (printf "job.cpu is %s, but pods on %s have at most %d CPUs" (toString $job.cpu) $type (sub (int $row.vcpus) 1)) -}}
{{- end -}}
{{- $image := "cpu" -}}
{{- if gt $gpus 0 }}{{ $image = eq (get $row "image") "cuda12" | ternary "cuda12" (gt $efa 0 | ternary "efa" "cuda") }}{{ end -}}
{{- dict "gpus" $gpus "efa" $efa "image" $image "gpu_memory" (get $row "gpu_memory_gib")
  "cpu" ($job.cpu | default (get $row "cpu") | default "60" | toString)
  "memory" ($job.memory | default (get $row "memory") | default "440Gi")
  "shm" ($job.shm | default (get $row "shm") | default "32Gi") | toJson -}}
{{- end -}}

{{/* The size of /dev/shm of a worker. Input: the result of dtrain.instance. */}}
{{- define "dtrain.shm" -}}
{{- $memory := include "dtrain.kib" .memory | int64 -}}
{{- if and (gt $memory 0) (ge (include "dtrain.kib" .shm | int64) $memory) -}}
{{- fail (printf "job.shm is %s, which counts towards the memory: expected less than job.memory, %s" .shm .memory) -}}
{{- end -}}
{{- .shm -}}
{{- end -}}
