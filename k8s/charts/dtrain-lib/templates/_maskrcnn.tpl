{{/* The MPIJob of both Mask R-CNN charts. Input: root, preset, flags (additional), config (chart-specific keys). */}}
{{- define "dtrain.maskrcnn" -}}
{{- $v := .root.Values.maskrcnn -}}
{{- $global := .root.Values.global -}}
{{- $shared := $global.shared_pvc -}}
{{- /* Values of the older charts without effect. */ -}}
{{- if not (has $v.train_script (list nil "" "/tensorpack/examples/FasterRCNN/train.py" "/mask-rcnn-tensorflow/MaskRCNN/train.py")) -}}
{{- fail (printf "maskrcnn.train_script is %s: this chart runs dtrain-mask-rcnn; use the chart mpijob for other programs" $v.train_script) -}}
{{- end -}}
{{- if not (has $v.working_dir (list nil "" "/mask-rcnn-tensorflow")) -}}
{{- fail (printf "maskrcnn.working_dir is %s: expected /mask-rcnn-tensorflow or nothing; it has no effect" $v.working_dir) -}}
{{- end -}}
{{- $data := $v.data_pvc | default (ternary $shared (printf "pv-%s" $v.data_fs) (eq $v.data_fs $global.shared_fs)) -}}
{{- $claims := dict "output_claim" $shared "output_path" (printf "/%s" $global.shared_fs) "data_claim" $data "data_path" "/data" -}}
{{- $run := $v.log_dir | default .root.Release.Name -}}
{{- $instance := include "dtrain.instance" (dict "root" .root "instance_type" $v.gpu_instance_type "gpus" $v.gpus_per_node "key" "maskrcnn.gpu_instance_type") | fromJson -}}
{{- $args := concat
  (list "dtrain-mpirun" "-np" "$(RANKS)" "-bind-to" "none" "-map-by" "slot" "-mca" "pml" "ob1" "-mca" "btl" "^openib"
    "--display-map" "-output-filename" (printf "$(OUTPUT_DIR)/%s/logs/$(POD_NAME)" $run)
    "dtrain-mask-rcnn" "train" (printf "--preset=%s" .preset) (printf "--batch_size=%d" (int $v.batch_size_per_gpu)))
  (list "--data_dir=$(DATASET_DIR)" (printf "--train_dir=$(OUTPUT_DIR)/%s/train_log/maskrcnn" $run) "--expect_ranks=$(RANKS)")
  .flags -}}
{{- if gt (int $v.tf_enable_auto_mixed_precision) 0 -}}{{- $args = append $args "--use_fp16" -}}{{- end -}}
{{- if gt (int $v.horovod_autotune) 0 -}}{{- $args = append $args "--autotune_buckets" -}}{{- end -}}
{{- with include "dtrain.memory-flag" (dict "reserve" $v.tf_device_min_sys_mem_mb "instance" $instance "memory" $v.gpu_memory_gb) -}}
{{- $args = append $args . -}}
{{- end -}}
{{- $args = concat $args (include "dtrain.metrics-flags" .root | fromJsonArray) $v.extra_args (list "--config"
  (printf "MODE_FPN=%s" ($v.mode_fpn | toString | title)) (printf "MODE_MASK=%s" ($v.mode_mask | toString | title))
  (printf "DATA.TRAIN=%s" $v.data_train) (printf "DATA.VAL=%s" $v.data_val)
  (printf "TRAIN.EVAL_PERIOD=%d" (int $v.eval_period_in_epochs)) (printf "TRAIN.BASE_LR=%s" (toString $v.base_lr))
  (printf "BACKBONE.NORM=%s" $v.backbone_norm) "TRAINER=horovod") .config -}}
{{- with $v.steps_per_epoch -}}{{- $args = append $args (printf "TRAIN.STEPS_PER_EPOCH=%d" (int .)) -}}
{{- else -}}{{- $args = append $args (printf "TRAIN.IMAGES_PER_EPOCH=%d" (int $v.images_per_epoch)) -}}{{- end -}}
{{- with $v.backbone_weights -}}{{- $args = append $args (printf "BACKBONE.WEIGHTS=/data/%s" .) -}}{{- end -}}
{{- $key := "[^\\s'\"\\[(]+=('[^']*'|\"[^\"]*\"|\\[[^]]*\\]|\\([^)]*\\)|\\S+)" -}}
{{- with regexReplaceAll $key $v.extra_config "" | trim -}}{{- fail (printf "extra_config: %q is not KEY=VALUE" .) -}}{{- end -}}
{{- $args = concat $args (regexFindAll $key $v.extra_config -1 | default list) -}}
{{- include "dtrain.mpijob" (dict "root" .root "workers" $v.gpu_nodes "instance" $instance "gpus_in_all" $v.gpus
  "image" $v.image "pull_policy" $v.image_pull_policy "backoff_limit" $v.backoff_limit
  "instance_type" $v.gpu_instance_type "if_exclude" $v.if_exclude "nccl_socket_ifname" $v.nccl_socket_ifname
  "nccl_debug" $v.nccl_debug "args" $args
  "logs" (dict "claim" $shared "mount_path" (printf "/%s" $global.shared_fs) "folder" (printf "/%s/%s/logs" $global.shared_fs $run))
  "launcher_env" (list (dict "name" "OUTPUT_DIR" "value" (printf "/%s" $global.shared_fs))
    (dict "name" "DATASET_DIR" "value" (printf "/data/%s" $v.data_dir)))
  "volumes" (include "dtrain.claim-volumes" $claims) "mounts" (include "dtrain.claim-mounts" $claims)) -}}
{{- end -}}

{{/* Input: the root. */}}
{{- define "dtrain.maskrcnn-notes" -}}
{{- $run := .Values.maskrcnn.log_dir | default .Release.Name -}}
{{- include "dtrain.notes" (dict "root" . "logs" (printf "/%s/%s" .Values.global.shared_fs $run) "claim" .Values.global.shared_pvc) -}}
{{- end -}}
