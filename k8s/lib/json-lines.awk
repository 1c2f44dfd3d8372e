# Turns JSON with one member per line, as kubectl and aws print it, into lines PATH<tab>VALUE. | separates the parts of a
# path, which begins with the number of the document. Empty members are left out.
BEGIN { document = -1 }
{
  line = $0
  sub(/^ +/, "", line)
  sub(/,$/, "", line)
  if (line ~ /^[\]}]/) {
    depth--
    next
  }
  if (depth == 0) path[0] = ++document
  name = ""
  if (depth > 0 && array[depth]) {
    name = count[depth]++
  } else if (match(line, /^"([^"\\]|\\.)*": /)) {
    name = substr(line, 2, RLENGTH - 4)
    line = substr(line, RLENGTH + 1)
  }
  if (depth > 0) path[depth] = path[depth - 1] "|" name
  if (line == "{" || line == "[") {
    array[++depth] = line == "["
    count[depth] = 0
    next
  }
  if (line == "{}" || line == "[]" || line == "null") next
  gsub(/^"|"$/, "", line)
  print path[depth] "\t" line
}
