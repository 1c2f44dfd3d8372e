# shellcheck shell=bash
# Values that the parameters of overlays and storages may have. Source it in a script that defines `die MESSAGE [CODE]`.
label='[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'
name="$label(\.$label)*"
word='[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'  # a label's value
key="($name/)?$word"
toleration="$key(=($word)?)?(:(NoSchedule|PreferNoSchedule|NoExecute))?"
spread="$key(:(ScheduleAnyway|DoNotSchedule))?"
text="[^\"\\\\]*"
declare -A expected=(
  [NAMESPACE]="^$label\$|a namespace: at most 63 lower-case letters, digits and hyphens"
  [NAME]='^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$|a name: lower-case letters, digits and hyphens, beginning with a letter'
  [IMAGE]='^[a-z0-9][-a-z0-9._/:]*(:[A-Za-z0-9_][-A-Za-z0-9_.]*|@sha256:[0-9a-f]{64})$|an image with its tag or digest'
  [TENSORBOARD_IMAGE]='^[a-z0-9][-a-z0-9._/:]*(:[A-Za-z0-9_][-A-Za-z0-9_.]*|@sha256:[0-9a-f]{64})$|an image with its tag or digest'
  [WORKERS]='^[1-9][0-9]{0,4}$|a number from 1'
  [SLOTS]='^[1-9][0-9]{0,2}$|a number from 1'
  [MIN_RANKS]='^[1-9][0-9]{0,5}$|a number from 1'
  [EFA]='^[1-9][0-9]?$|a number from 1'
  [CPU]='^[1-9][0-9]*m?$|cores, such as 24, or 500m'
  [MEMORY]='^[1-9][0-9]{0,8}[KMGT]i$|bytes, such as 64Gi'
  [SHM]='^[1-9][0-9]{0,8}[KMGT]i$|bytes, such as 8Gi'
  [USER_ID]='^[1-9][0-9]{0,8}$|a number from 1: the pods do not run as root'
  [GROUP_ID]='^(0|[1-9][0-9]{0,8})$|a number'
  [FS_ID]='^(0|[1-9][0-9]{0,8})$|a number'
  [USER_NAME]='^[a-z_][-a-z0-9_]{0,31}$|a name of at most 32 lower-case letters, digits, - and _'
  [GROUP_NAME]='^[a-z_][-a-z0-9_]{0,31}$|a name of at most 32 lower-case letters, digits, - and _'
  [NFS_SERVER]='^[A-Za-z0-9]([-A-Za-z0-9.:]{0,251}[A-Za-z0-9])?$|a host name or address'
  [PVC_NAME]="^$label(\.$label)*\$|a claim name"
  [SERVICE_ACCOUNT]="^$label(\.$label)*\$|a service account name"
  [DATA_CLAIM]="^$label(\.$label)*\$|a claim name"
  [QUEUE]="^$label(\.$label)*\$|a queue name"
  [FILE_SYSTEM_ID]='^fs-[0-9a-f]{8,40}$|a file system id, such as fs-0123456789abcdef0'
  [DNS_NAME]='^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$|the DNSName of aws fsx describe-file-systems'
  [MOUNT_NAME]='^[A-Za-z0-9_-]{1,8}$|the MountName of aws fsx describe-file-systems'
  [SUBNET_ID]='^subnet-[0-9a-f]{8,17}$|a subnet id, such as subnet-0123456789abcdef0'
  [SECURITY_GROUP_IDS]='^sg-[0-9a-f]{8,17}(,sg-[0-9a-f]{8,17})*$|comma-separated ids such as sg-0123456789abcdef0'
  [AUTO_IMPORT_POLICY]='^(NONE|NEW|NEW_CHANGED|NEW_CHANGED_DELETED)$|NONE, NEW, NEW_CHANGED or NEW_CHANGED_DELETED'
  [THROUGHPUT]='^(125|250|500|1000)$|MB/s per TiB: 125, 250, 500 or 1000'
  [CLASS]="^$label(\.$label)*\$|a StorageClass name"
  [PV_NAME]="^$label(\.$label)*\$|a PersistentVolume name"
  [STORAGE]='^[1-9][0-9]{0,9}[GT]i$|a size, such as 1200Gi'
  [CLAIM_STORAGE]='^[1-9][0-9]{0,9}[GT]i$|a size, such as 1200Gi'
  [RECLAIM_POLICY]='^(Retain|Recycle|Delete)$|Retain, Recycle or Delete'
  [NFS_EXPORT]='^(/|(/[-A-Za-z0-9._]+)+)$|the absolute path that the server exports'
  [FOLDER]='^[A-Za-z0-9_][-A-Za-z0-9._]*(/[A-Za-z0-9_][-A-Za-z0-9._]*)*$|a folder of the claim, such as imagenet, without a first /'
  [PRIORITY_CLASS]="^$name\$|a PriorityClass name"
  [IMAGE_PULL_SECRETS]="^$name(,$name)*\$|comma-separated names of Secrets"
  [TOLERATIONS]="^$toleration(,$toleration)*\$|comma-separated taints KEY[=VALUE][:EFFECT], as for kubectl taint"
  [AFFINITY]="^$key=$word(:$word)*(,$key=$word(:$word)*)*\$|comma-separated node labels KEY=VALUE[:VALUE...]"
  [TOPOLOGY_SPREAD]="^$spread(,$spread)*\$|comma-separated node labels KEY[:ScheduleAnyway or :DoNotSchedule]"
  [LABELS]="^$key=($word)?(,$key=($word)?)*\$|comma-separated labels KEY=VALUE"
  [ANNOTATIONS]="^$key=$text\$|comma-separated annotations KEY=VALUE without quotes and backslashes"
  [ENV]="^[A-Za-z_][A-Za-z0-9_]*=$text\$|comma-separated variables NAME=VALUE without quotes and backslashes"
  [EPHEMERAL_STORAGE]='^[1-9][0-9]*[KMGT]i$|bytes, such as 10Gi'
  [TOPOLOGY]="^$key\$|a node label, such as topology.k8s.aws/network-node-layer-3"
  [MONITORING]="^$label\$|the namespace of Prometheus"
  [SPOT]='^yes$|yes, or nothing'
  [ISTIO]='^no$|no, to stay out of the mesh, or nothing'
  [S3_URL]='^s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9](/[-A-Za-z0-9._/]*)?$|s3://BUCKET/PREFIX'
)
expected[BUCKET]='^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$|the name of a bucket'
expected[PREFIX]='^[-A-Za-z0-9._]+(/[-A-Za-z0-9._]+)*/$|a prefix of the bucket with a final /, such as sets/coco2017/'
expected[S3_IMPORT_PATH]=${expected[S3_URL]}
expected[S3_EXPORT_PATH]=${expected[S3_URL]}
expected[RESULTS_URL]='^s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9](/[-A-Za-z0-9._]+)*$|s3://BUCKET/PREFIX without a final /'
for path in DATASET_DIR DATA_PATH NFS_PATH PVC_PATH; do
  expected[$path]='^(/[-A-Za-z0-9._]+)+$|an absolute path of letters, digits and -._ without a final /'
done
# Mount paths that would hide files of the image.
taken='^/(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|tmp|usr|var)(/|$)'

check_value() {  # NAME VALUE
  local rule=${expected[$1]:-}
  [ -n "$rule" ] || die "$1 cannot be set"
  [[ $2 =~ ${rule%|*} ]] || die "$1='$2': expected ${rule##*|}"
  case $1 in
    IMAGE | TENSORBOARD_IMAGE) [[ $2 != *:latest ]] || die "$1='$2': expected a version instead of latest" ;;
    DATASET_DIR | DATA_PATH | NFS_PATH | PVC_PATH)
      [[ $2 != */.. && $2 != */../* && $2 != */. && $2 != */./* ]] || die "$1='$2': expected a path without . and .."
      ! [[ $2 =~ $taken ]] || die "$1='$2': a volume there would hide files of the image"
      ;;
  esac
}
