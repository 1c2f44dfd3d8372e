#!/usr/bin/env bash
# Prints the SBOM of an image in SPDX 2.3 format:
#     bill-of-materials.sh VERSION "PACKAGE..." [FILE...]
# VERSION is dtrain's version, PACKAGE an installed Debian package; each FILE lists other packages, one per line:
# NAME VERSION PURL SHA256. SHA256 is the digest of the package's file, or "-" if it is unknown, as for a Debian package
# that is not in apt's lists. The output is reproducible; its timestamp is SOURCE_DATE_EPOCH.
set -euo pipefail
version=$1
read -ra packages <<<"$2"
shift 2

# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "$ID $VERSION_ID")
list=$(
  {
    apt-cache show "${packages[@]}" 2>/dev/null | awk '/^[PVS]/ { value[$1] = $2 }
      /^SHA256:/ { print "sum", value["Package:"], value["Version:"], $2 }' || true
    dpkg-query -W -f 'package ${Package} ${Version} ${Architecture}\n' "${packages[@]}" | sort -u
    if [ $# != 0 ]; then sort -u "$@"; fi
  } | awk -v distribution="$distribution" '
    $1 == "sum" { sums[$2 " " $3] = $4; next }
    $1 == "package" {
      split(distribution, name)
      version = $3
      gsub(/:/, "%3A", version)  # the only two characters of Debian versions that a package URL must escape
      gsub(/\+/, "%2B", version)
      sum = sums[$2 " " $3]
      $0 = $2 " " $3 " pkg:deb/" name[1] "/" $2 "@" version "?arch=" $4 "&distro=" name[1] "-" name[2] " " (sum ? sum : "-")
    }
    {
      id = $1
      gsub(/[^A-Za-z0-9.-]/, "-", id)
      printf ",\n  {\"SPDXID\":\"SPDXRef-Package-%s\",\"name\":\"%s\",\"versionInfo\":\"%s\",", id, $1, $2
      printf "\"downloadLocation\":\"NOASSERTION\",\"filesAnalyzed\":false,\"licenseConcluded\":\"NOASSERTION\","
      printf "\"licenseDeclared\":\"NOASSERTION\",\"copyrightText\":\"NOASSERTION\","
      if ($4 != "-") printf "\"checksums\":[{\"algorithm\":\"SHA256\",\"checksumValue\":\"%s\"}],", $4
      printf "\"externalRefs\":[{\"referenceCategory\":\"PACKAGE-MANAGER\",\"referenceType\":\"purl\",\"referenceLocator\":\"%s\"}]}", $3
    }')
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
