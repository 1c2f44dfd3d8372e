# Quantities of Kubernetes in thousandths, and back.
function amount(text,   unit, i, units) {
  gsub(/"/, "", text)
  unit = text
  sub(/^[0-9.]+/, "", unit)
  sub(/[A-Za-z]+$/, "", text)
  if (unit == "m") return text + 0
  for (i = split("Ki Mi Gi Ti Pi", units, " "); i > 0; i--) if (unit == units[i]) return text * 1000 * 1024 ^ i
  for (i = split("k M G T P", units, " "); i > 0; i--) if (unit == units[i]) return text * 1000 ^ (i + 1)
  return text * 1000
}
function readable(thousandths) {
  if (thousandths >= 1000 * 1024 ^ 3) return sprintf("%.6gGi", thousandths / 1000 / 1024 ^ 3)
  if (thousandths >= 1000 * 1024 ^ 2) return sprintf("%.6gMi", thousandths / 1000 / 1024 ^ 2)
  return sprintf("%g", thousandths / 1000)
}
