# Reads k8s/instance-types.csv, the first file of a program: types[1 .. last] are the instance types, cell(TYPE, COLUMN)
# the values. Further files have fields separated by tabs.
FILENAME == ARGV[1] {
  n = split($0, field, ",")
  if (FNR == 1) {
    for (i = 1; i <= n; i++) column[field[i]] = i
  } else {
    types[++last] = field[1]
    row[field[1]] = $0
  }
  next
}
FNR == 1 {
  FS = "\t"
  $0 = $0
}
function cell(type, name,   field) {
  split(row[type], field, ",")
  return field[column[name]]
}
