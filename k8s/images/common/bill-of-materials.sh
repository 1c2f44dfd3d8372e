#!/usr/bin/env bash
# Prints the SBOM of an image in SPDX 2.3 format:
#     bill-of-materials.sh VERSION FILE PACKAGE...
# VERSION is dtrain's version, PACKAGE a Debian package, and the optional FILE lists other packages as "NAME VERSION"
# lines. The output is reproducible; its timestamp is SOURCE_DATE_EPOCH.
set -euo pipefail
version=$1 others=$2
shift 2

entry() {  # NAME VERSION SUPPLIER [PURL]
  local name=${1//[^A-Za-z0-9.-]/-}
  printf ',\n  {"SPDXID":"SPDXRef-%s","name":"%s","versionInfo":"%s","supplier":"%s","downloadLocation":"NOASSERTION",' \
    "$name" "$1" "$2" "$3"
  printf '"filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","copyrightText":"NOASSERTION"'
  [ -z "${4:-}" ] ||
    printf ',"externalRefs":[{"referenceCategory":"PACKAGE-MANAGER","referenceType":"purl","referenceLocator":"%s"}]' "$4"
  printf '}'
}

# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "$ID $VERSION_ID")
read -r system release <<<"$distribution"
list=$(
  dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' "$@" | sort -u |
    while read -r name number architecture; do
      # The only two characters of Debian versions that a package URL must escape.
      escaped=${number//:/%3A}
      escaped=${escaped//+/%2B}
      entry "$name" "$number" "Organization: $system" \
        "pkg:deb/$system/$name@$escaped?arch=$architecture&distro=$system-$release"
    done
  if [ -e "$others" ]; then
    sort -u "$others" | while read -r name number; do entry "$name" "$number" NOASSERTION; done
  fi
)
sum=$(sha256sum <<<"$version $list")
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
cat <<END
{"spdxVersion":"SPDX-2.3","dataLicense":"CC0-1.0","SPDXID":"SPDXRef-DOCUMENT","name":"dtrain",
 "documentNamespace":"urn:sha256:${sum%% *}",
 "creationInfo":{"created":"$created","creators":["Tool: dtrain-$version"]},
 "documentDescribes":["SPDXRef-dtrain"],
 "packages":[
  {"SPDXID":"SPDXRef-dtrain","name":"dtrain","versionInfo":"$version","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"Apache-2.0","licenseDeclared":"Apache-2.0","copyrightText":"NOASSERTION"}$list
 ]}
END
