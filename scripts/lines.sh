#!/usr/bin/env bash
# Counts lines and files of tracked sources per folder and in total.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' | xargs wc -l |
  awk '$2 != "total" {
         folder = $2; sub("/?[^/]*$", "", folder); if (folder == "") folder = "."
         lines[folder] += $1; files[folder]++; all += $1; count++
       }
       END {
         for (folder in lines) printf "%7d lines %4d files  %s\n", lines[folder], files[folder], folder | "sort -k5"
         close("sort -k5"); printf "%7d lines %4d files  in all\n", all, count
       }'
