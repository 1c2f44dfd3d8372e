#!/usr/bin/env bash
# Creates the TLS certificate and the Jupyter token of a release of maskrcnn-jupyter or maskrcnn-optimized-jupyter, as the
# Secrets NAME-tls (tls.crt, tls.key, ca.crt) and NAME-token (token):
#     k8s/serving-secret.sh [--new] [--token-only] NAME [NAMESPACE [HOST...]]
# NAME is the release, NAMESPACE is `default` by default. The certificate is valid for ten years, for NAME, NAME.NAMESPACE,
# NAME.NAMESPACE.svc, localhost, 127.0.0.1 and each HOST. The key of its CA is not stored. Existing Secrets are kept, and a
# certificate and token that version 0.2 of the chart stored in the Secret NAME are taken over.
#   --new         replaces existing Secrets; then restart the Deployment NAME
#   --token-only  only the token: cert-manager issues the certificate (nginx.issuer)
# Keys are written only to a private temporary directory.
# Exit codes: 0 done, 1 usage, 4 the cluster rejects the request, 6 a tool is missing, or no certificate could be created.
set -euo pipefail
die() {
  echo "serving-secret.sh: $2" >&2
  exit "$1"
}
usage='usage: k8s/serving-secret.sh [--new] [--token-only] NAME [NAMESPACE [HOST...]]'
new=no
secrets=(tls token)
while [[ ${1:-} == --* ]]; do
  case $1 in
    --new) new=yes ;;
    --token-only) secrets=(token) ;;
    *) die 1 "unknown option $1; $usage" ;;
  esac
  shift
done
name=${1:-}
namespace=${2:-default}
[[ $name =~ ^[a-z]([-a-z0-9]{0,51}[a-z0-9])?$ ]] || die 1 "'$name' is not the name of a release; $usage"
[[ $namespace =~ ^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$ ]] || die 1 "'$namespace' is not the name of a namespace; $usage"
for host in "${@:3}"; do
  [[ $host =~ ^(\*\.)?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$ ]] || die 1 "'$host' is not a host name; $usage"
done
for tool in kubectl openssl base64; do command -v $tool >/dev/null || die 6 "$tool is not installed"; done
where=(--namespace "$namespace")
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT
mkdir "$keys/tls" "$keys/token"

# Writes a value of version 0.2's Secret to FILE: take_over KEY FILE
take_over() {
  local text
  text=$(kubectl get secret "$name" "${where[@]}" --ignore-not-found -o jsonpath="{.data.${1//./\\.}}") || exit 4
  [ -n "$text" ] && base64 -d <<<"$text" >"$2"
}
make_certificate() {
  local host hosts="IP:127.0.0.1"
  for host in "$name" "$name.$namespace" "$name.$namespace.svc" localhost "$@"; do hosts+=",DNS:$host"; done
  local request=(openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
  {
    # The organisation separates the CA's subject from that of a certificate with the same common name.
    "${request[@]}" -x509 -days 3650 -subj "/O=dtrain/CN=$name in $namespace" -keyout "$keys/ca.key" -out "$keys/tls/ca.crt" \
      -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign' &&
      "${request[@]}" -subj "/CN=$name" -keyout "$keys/tls/tls.key" -out "$keys/request" &&
      printf '%s\n' "subjectAltName=$hosts" 'basicConstraints=critical,CA:FALSE' \
        'keyUsage=critical,digitalSignature' 'extendedKeyUsage=serverAuth' >"$keys/extensions" &&
      openssl x509 -req -days 3650 -in "$keys/request" -CA "$keys/tls/ca.crt" -CAkey "$keys/ca.key" -CAcreateserial \
        -extfile "$keys/extensions" -out "$keys/tls/tls.crt"
  } >"$keys/log" 2>&1 || { tail -n 3 "$keys/log" >&2; die 6 "openssl could not create a certificate"; }
}
make_tls() {
  if [ $new = no ] && take_over tls.crt "$keys/tls/tls.crt"; then
    if ! take_over tls.key "$keys/tls/tls.key" || ! take_over ca.crt "$keys/tls/ca.crt"; then
      die 4 "the secret $name has tls.crt but not tls.key and ca.crt: --new creates a new certificate"
    fi
    echo "the certificate of the secret $name is kept"
  else
    make_certificate "$@"
  fi
}
make_token() {
  if [ $new = no ] && take_over token "$keys/token/token"; then return; fi
  local text
  text=$(openssl rand -hex 24) || die 6 "openssl could not create a token"
  printf %s "$text" >"$keys/token/token"
}

for secret in "${secrets[@]}"; do
  type=Opaque
  [ "$secret" != tls ] || type=kubernetes.io/tls
  found=$(kubectl get secret "$name-$secret" "${where[@]}" --ignore-not-found -o name) || exit 4
  if [ -n "$found" ] && [ $new = no ]; then
    echo "serving-secret.sh: $found exists; --new replaces it" >&2
    continue
  fi
  "make_$secret" "${@:3}"
  [ -z "$found" ] || kubectl delete secret "$name-$secret" "${where[@]}" || exit 4
  kubectl create secret generic "$name-$secret" "${where[@]}" --type="$type" --from-file="$keys/$secret" || exit 4
done
