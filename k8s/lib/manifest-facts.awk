# Lists what k8s/lib/preflight-weights.sh and k8s/benchmark/data.sh need of a manifest in the style of `kubectl kustomize`:
#     weights PATH              a file of initial weights that a program gets, with variables as $(NAME)
#     variable NAME VALUE
#     mount PATH VOLUME SUBPATH
#     claim VOLUME CLAIM
#     image IMAGE               of a container; id KEY NUMBER: runAsUser, runAsGroup, fsGroup; secret NAME: a pull secret
# Fields are separated by tabs.
BEGIN { OFS = "\t" }
function plain(text) {
  if (text ~ /^'.*'$/) {
    text = substr(text, 2, length(text) - 2)
    gsub(/''/, "'", text)
  } else if (text ~ /^".*"$/) {
    text = substr(text, 2, length(text) - 2)
  }
  return text
}
# A flag whose value is the next argument, or a flag or key with its value.
function argument(text) {
  if (expected) print "weights", text
  expected = text == "--load" || text == "--weights"
  if (text ~ /^(--load|--weights|BACKBONE\.WEIGHTS)=./) {
    sub(/^[^=]*=/, "", text)
    print "weights", plain(text)
  }
}
function end_of_mount() {
  if (mounted != "") print "mount", mounted, volume, sub_path
  mounted = sub_path = ""
}
{
  match($0, /^ */)
  indent = RLENGTH
  item = substr($0, indent + 1, 2) == "- "
  line = substr($0, indent + 1 + 2 * item)
  key = line
  sub(/:( .*)?$/, "", key)
  value = line ~ /: / ? plain(substr(line, index(line, ": ") + 2)) : ""
  # A list has the indentation of its key.
  if (indent < depth || (indent == depth && !item)) {
    end_of_mount()
    list = ""
  }
  if (list == "" && line ~ /^(args|env|volumeMounts|volumes|imagePullSecrets):$/) {
    list = key
    depth = indent + 2 * item
    expected = 0
    next
  }
}
list == "args" && item && indent == depth { argument(plain(line)) }
list == "env" && key == "name" { variable = value }
list == "env" && key == "value" { print "variable", variable, value }
list == "volumeMounts" && item { end_of_mount() }
list == "volumeMounts" && key == "mountPath" { mounted = value }
list == "volumeMounts" && key == "name" { volume = value }
list == "volumeMounts" && key == "subPath" { sub_path = value }
list == "volumes" && item { name = "" }
list == "volumes" && key == "name" && indent + 2 * item == depth + 2 { name = value }
list == "volumes" && key == "claimName" { print "claim", name, value }
list == "imagePullSecrets" && key == "name" { print "secret", value }
list == "" && key == "image" { print "image", value }
list == "" && key ~ /^(runAsUser|runAsGroup|fsGroup)$/ { print "id", key, value }
END { end_of_mount() }
