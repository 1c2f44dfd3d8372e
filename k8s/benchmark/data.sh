# shellcheck shell=bash disable=SC2154  # root and experiments
# Checks that the experiments of a plan read the data that it stages. Source it in a script that defines `die`, `value`,
# `render` and `storage_manifest`. Only manifests in the style of `kubectl kustomize` are checked.

# Lines `claim CLAIM CLASS` and `import CLASS S3-URL` of a storage.
storage_facts() {
  awk '
    function flush() {
      if (kind == "PersistentVolumeClaim" && name != "") print "claim", name, class
      if (kind == "StorageClass" && name != "" && path != "") print "import", name, path
      kind = name = class = path = ""
    }
    /^---/ { flush() }
    /^[a-z]/ { section = $1 }
    /^kind: / { kind = $2 }
    section == "metadata:" && /^  name: / { name = $2 }
    /^  storageClassName: / { class = $2 }
    /^  s3ImportPath: / { path = $2 }
    END { flush() }' "$1"
}

# Lines DATASET_DIR MOUNT CLAIM of an experiment that reads its data from a claim.
data_of() {  # MANIFEST
  awk -f "$root/k8s/lib/manifest-facts.awk" "$1" | awk -F '\t' '
    $1 == "variable" && $2 == "DATASET_DIR" { data = $3 }
    $1 == "claim" { claims[$2] = $3 }
    $1 == "mount" { mounts[$2] = $3 }
    END {
      for (path in mounts) if (index(data "/", path "/") == 1 && length(path) > length(best)) best = path
      if (best != "" && mounts[best] in claims) print data, best, claims[mounts[best]]
    }'
}

# Dies if a storage links a bucket that does not show the staged data, or an experiment reads another folder of its claim.
check_data() {
  local set_name folder url word name rest file manifest experiment data mount claim expected wrong
  local -A imports=() classes=()
  set_name=$(value data)
  case $set_name in imagenet) folder=imagenet ;; coco) folder=coco2017 ;; *) return 0 ;; esac
  url=s3://$(value data_path)/$folder
  for file in "$@"; do
    while read -r word name rest; do
      case $word in claim) classes[$name]=$rest ;; import) imports[$name]=${rest%/} ;; esac
    done < <(storage_facts "$(storage_manifest "$file")")
  done
  manifest=$(mktemp) || die 6 "no temporary file could be created"
  for experiment in "${experiments[@]}"; do
    render "$(value "$experiment/manifest")" >"$manifest" || continue  # run_experiment reports it
    read -r data mount claim < <(data_of "$manifest") || continue
    name=${imports[${classes[$claim]:-none}]:-}
    [ -n "$name" ] || continue
    expected=$mount${url#"$name"}
    if [[ $url != "$name"/* ]]; then
      wrong="the claim $claim shows $name, but the data is staged to $url: set data_path, or S3_IMPORT_PATH of the storage"
    elif [ "$data" != "$expected" ]; then
      wrong="it reads $data of the claim $claim, but the data is staged to $expected: set DATASET_DIR, or data_path"
    else
      continue
    fi
    rm -f "$manifest"
    die 1 "experiment $experiment: $wrong"
  done
  rm -f "$manifest"
}
