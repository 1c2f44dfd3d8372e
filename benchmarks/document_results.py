#!/usr/bin/env python3
"""Writes docs/performance.md from benchmarks/performance_template.md and the measurements in benchmarks/results.

    benchmarks/document_results.py            writes the page
    benchmarks/document_results.py --check    exits with 1 if the page differs

A line @NAME@ of the template is replaced by the table NAME of result_tables.py. Each table shows the newest result per
machine. Result files are called <date>-<task>-<machine>.json; machines.json describes the machines. A file of another
name, or one that no table uses, is an error: delete it, its history stays in git.

Exit codes: 0 done, 1 the page differs or a result file is unused, 2 usage.
"""
import argparse
import pathlib
import re
import sys

import result_tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance.md"


def page_of(template, results):
    def table(match):
        if match[1] not in result_tables.TABLES:
            sys.exit(f"performance_template.md: no table is called {match[1]}; "
                     f"expected one of {', '.join(result_tables.TABLES)}")
        return result_tables.TABLES[match[1]](results).text()

    text = re.sub(r"^@([\w-]+)@$", table, template, flags=re.MULTILINE)
    unused = [result.path.name for result in results.all if not result.used]
    if unused:
        sys.exit(f"benchmarks/results: no table uses {', '.join(unused)}; delete what a newer result replaces")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "benchmarks/results",
                        help="folder of the measurements")
    options = parser.parse_args()
    page = page_of((ROOT / "benchmarks/performance_template.md").read_text(), result_tables.Results(options.results))
    if not options.check:
        PAGE.write_text(page)
    elif page != PAGE.read_text():
        sys.exit("docs/performance.md differs from benchmarks/results: run benchmarks/document_results.py")


if __name__ == "__main__":
    main()
