#!/usr/bin/env bash
# check_symbols.sh GLIBC FOLDER: fails, naming file and symbol, if an ELF file in FOLDER needs a symbol of a C library
# later than GLIBC, e.g. 2.31, or a shared library that neither the C library's packages nor FOLDER have.
set -euo pipefail
newest=$1
folder=$2
system='^(ld-linux-x86-64\.so\.2|lib(c|m|dl|rt|pthread|resolv)\.so\.[0-9]+|libgcc_s\.so\.1)$'
files=0 faults=0
while read -r file; do
  [ "$(head -c 4 "$file" | tr -d '\0\177')" = ELF ] || continue
  files=$((files + 1))
  while read -r version symbol; do
    [ "$(printf '%s\n' "$version" "$newest" | sort -V | tail -n 1)" = "$newest" ] && continue
    echo "$file: needs $symbol of glibc $version; expected at most $newest" >&2
    faults=$((faults + 1))
  done < <(objdump -T "$file" | sed -n 's/.*\*UND\*.*GLIBC_\([0-9.]*\)[^ ]* *\(.*\)/\1 \2/p')
  while read -r library; do
    [[ $library =~ $system ]] || [ -n "$(find "$folder" -name "$library" -print -quit)" ] && continue
    echo "$file: needs $library, which is neither in $folder nor part of the C library" >&2
    faults=$((faults + 1))
  done < <(objdump -p "$file" | sed -n 's/^ *NEEDED *//p')
done < <(find "$folder" -type f)
[ $files != 0 ] || { echo "$folder: there are no ELF files" >&2; exit 1; }
[ $faults = 0 ] || exit 1
echo "$files ELF files need glibc $newest or later, and no other library of the system"
