#!/usr/bin/env bash
# A single-node Kubernetes, built from Debian's packages and sources, in the caller's namespaces:
#     cluster.sh build          builds the programs once; see cluster/build.sh
#     cluster.sh up FOLDER      starts etcd, API server, controller manager, scheduler, containerd and kubelet
# `up` needs private network, mount, PID and cgroup namespaces, as created by cluster_test.py, and returns when the node
# is ready. FOLDER gets `kubeconfig` and logs; its subfolder `share` has the same path on the node. The node's address
# is 10.98.0.1, the pod CIDR is 10.99.0.0/24, and pods use the node as DNS server, which the caller must run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${DTRAIN_K8S_CACHE:-$HOME/.cache/dtrain/kubernetes}

start() {  # NAME COMMAND...
  local name=$1
  shift
  setsid "$@" >"$folder/$name.log" 2>&1 </dev/null &
}

control_plane() {
  openssl genrsa -out "$folder/accounts.key" 2048 2>/dev/null
  local token
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "$token,admin,admin,\"system:masters\"" >"$folder/tokens"
  cat >"$folder/kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: "$token"}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
CONFIG
  start etcd "$cache/root/usr/bin/etcd" --data-dir "$folder/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
  start apiserver "$cache/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --cert-dir="$folder/certificates" \
    --bind-address=127.0.0.1 --secure-port=6443 --insecure-port=0 --advertise-address=10.98.0.1 \
    --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$folder/accounts.key" \
    --service-account-key-file="$folder/accounts.key" --token-auth-file="$folder/tokens" --authorization-mode=RBAC \
    --service-cluster-ip-range=10.96.0.0/16 --allow-privileged=false \
    --kubelet-preferred-address-types=InternalIP \
    --enable-admission-plugins=ResourceQuota,LimitRanger,NamespaceLifecycle
  export KUBECONFIG=$folder/kubeconfig
  await "the API server" kubectl get --raw /readyz
  start controllers "$cache/bin/kube-controller-manager" --kubeconfig="$KUBECONFIG" --leader-elect=false \
    --service-account-private-key-file="$folder/accounts.key" --use-service-account-credentials=false
  start scheduler "$cache/bin/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false
}

await() {  # WHAT COMMAND...
  local what=$1 looks
  shift
  for ((looks = 0; looks < 300; looks++)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  echo "cluster.sh: $what was not ready within 60 s; see the logs in $folder" >&2
  exit 4
}

# The node's root is an overlay of the cache; changes are discarded.
make_node() {
  local root=$folder/node
  mkdir -p "$root" "$folder/layer" "$folder/share"
  mount -t tmpfs tmpfs "$folder/layer"
  mkdir "$folder/layer/upper" "$folder/layer/work"
  mount -t overlay overlay -o "lowerdir=$cache/root,upperdir=$folder/layer/upper,workdir=$folder/layer/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  for place in run tmp var/lib/containerd var/lib/kubelet; do
    mkdir -p "$root/$place"
    mount -t tmpfs tmpfs "$root/$place"
  done
  mkdir -p "$root$folder/share" "$root/cache" "$root/etc/cni/net.d" "$root/etc/containerd"
  mount --rbind "$folder/share" "$root$folder/share"
  mount --bind "$cache/bin" "$root/cache"
  cp "$folder/kubeconfig" "$root/etc/kubeconfig"
  # Copied by pods; contains only names of the cluster.
  : >"$root/etc/resolv.conf"
  cat >"$root/etc/cni/net.d/10-pods.conflist" <<'NETWORK'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
  "hairpinMode": true, "ipam": {"type": "host-local", "dataDir": "/run/addresses",
  "ranges": [[{"subnet": "10.99.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
NETWORK
  cat >"$root/etc/containerd/config.toml" <<'CONTAINERD'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "localhost/pause:1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "/usr/bin/crun"
CONTAINERD
}

node() {
  ip link set lo up
  ip link add node0 type veth peer name node1
  ip link set node1 up
  ip address add 10.98.0.1/24 dev node0
  ip link set node0 up
  ip route add default via 10.98.0.254 dev node0
  echo 1 >/proc/sys/net/ipv4/ip_forward
}

up() {
  node
  control_plane
  make_node
  # One mount namespace for both: containerd must see the kubelet's mounts.
  cat >"$folder/node/etc/start.sh" <<'START'
containerd >"$1/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.2; done
for image in "$1"/images/*.tar; do ctr -n k8s.io images import "$image"; done
# Without this variable it waits for cloud credentials.
exec env AWS_EC2_METADATA_DISABLED=true /cache/kubelet --container-runtime=remote \
  --container-runtime-endpoint=unix:///run/containerd/containerd.sock --kubeconfig=/etc/kubeconfig \
  --fail-swap-on=false --cgroup-driver=cgroupfs --cgroups-per-qos=false --enforce-node-allocatable= \
  --cluster-dns=10.98.0.1 --cluster-domain=cluster.local --hostname-override=node --node-ip=10.98.0.1 \
  --eviction-hard= --authentication-token-webhook=false --authorization-mode=AlwaysAllow --anonymous-auth=true \
  --make-iptables-util-chains=false --resolv-conf=/etc/resolv.conf --node-status-update-frequency=2s \
  --volume-stats-agg-period=0
START
  # Entered by pivot_root: crun misplaces mounts under a chroot.
  start node unshare --mount --propagation unchanged sh -c "
    mount --rbind $folder/node $folder/node && cd $folder/node && mkdir -p .host && pivot_root . .host
    exec chroot . sh -c 'umount -l /.host; exec sh /etc/start.sh $folder/share'"
  await "the node" sh -c "kubectl get node node | grep -q ' Ready'"
}

case ${1:-} in
  build) exec "$here/cluster/build.sh" ;;
  up)
    folder=${2:?}
    up
    ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 1
    ;;
esac
