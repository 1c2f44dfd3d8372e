#!/usr/bin/env python3
"""Rewrites programs that use dtrain 0.1 for dtrain 0.2: paths of headers, names, and find_package.

    migrate_0_1_to_0_2.py FOLDER...

Changes C++ and CMake files below the folders in place; a second run changes nothing. Names are replaced where they are
qualified (dtrain::Queue, or by a namespace alias) and, in files with `using namespace dtrain`, unqualified. Prints what
was changed, and what must be changed by hand; then exits with 1. docs/migration.md has the same table.

    migrate_0_1_to_0_2.py --list     prints the table
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = next((folder / "include" for folder in (HERE.parent, *list(HERE.parents)[2:3], pathlib.Path("/usr"))
                if (folder / "include/dtrain/dtrain.h").is_file()), None)
CODE = (".h", ".hpp", ".hh", ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh")
CMAKE = ("CMakeLists.txt", ".cmake")

# Headers that were renamed. All others keep their names: see new_header.
HEADERS = {
    "libdtrain/core/moment.h": "dtrain/core/event.h",
    "libdtrain/autograd/op_watch.h": "dtrain/autograd/op_observer.h",
    "libdtrain/ops/crop_runs.h": "dtrain/ops/crop_masks.h",
}
# Namespace within dtrain, name, new name.
NAMES = [
    ("", "Moment", "Event"),
    ("", "Queue", "Stream"),
    ("", "OpWatch", "OpObserver"),
    ("", "RunImages", "RleMasks"),
    ("", "ByteForm", "QuantParams"),
    ("", "SumReport", "AllReduceReport"),
    ("", "AskedFor", "ExplicitSettings"),
    ("", "crop_runs", "crop_masks"),
    ("", "mask_out_unknown_runs", "ignore_unknown_masks"),
    ("", "continue_as_trained", "elastic_resume"),
    ("data", "Box", "NormalizedBox"),
    ("data", "DetectionOptions", "DetectionDatasetOptions"),
    ("data", "MakePreprocess", "PreprocessorFactory"),
    ("data::coco", "Box", "BoundingBox"),
    ("data::coco", "Evaluation", "DetectionMetrics"),
    ("data::coco", "Image", "AnnotatedImage"),
    ("models", "Forward", "ForwardFunction"),
]
# Expressions: what the table shows, pattern, replacement.
EXPRESSIONS = [
    ("Tape::op_watch()", "Tape::op_observer()", r"(?<=[.>])op_watch\(\)", "op_observer()"),
    ("Communicator::on_sum()", "Communicator::on_all_reduce()", r"(?<=[.>])on_sum\(", "on_all_reduce("),
    ("Context::replay()", "Context::launch()", r"(?<=[.>])replay\(", "launch("),
    ("CommunicatorOptions::queue", "CommunicatorOptions::stream",
     r"\.queue(?= = (?:\w+::)?(?:Queue|Stream)::)", ".stream"),
    ("StepRequest::record", "StepRequest::capture", r"\.record(?= = (?:true|false)\b)", ".capture"),
    ("sum_over_ranks(ranks, x, what)", "ranks.all_reduce({&x, 1}, what); ranks.join()",
     r"\b(?:\w+::)?sum_over_ranks\(\*(\w+), (\w+), ([^();]+)\);", r"\1->all_reduce({&\2, 1}, \3), \1->join();"),
    ("sum_over_ranks(ranks, x, what)", "ranks.all_reduce({&x, 1}, what); ranks.join()",
     r"\b(?:\w+::)?sum_over_ranks\((\w+), (\w+), ([^();]+)\);", r"\1.all_reduce({&\2, 1}, \3), \1.join();"),
]
INCLUDED = re.compile(r'^(\s*#\s*include\s*["<])((?:libdtrain|models|data)/[\w/]+\.h)(?=[">])', re.M)
ALIAS = re.compile(r"^\s*namespace (\w+) = (?:::)?dtrain((?:::\w+)*);", re.M)
USING = re.compile(r"^\s*using namespace dtrain((?:::\w+)*);", re.M)


def new_header(name: str) -> str:
    """libdtrain/ops/pool.h -> dtrain/ops/pool.h, data/png.h -> dtrain/data/png.h"""
    return HEADERS.get(name, "dtrain/" + name.removeprefix("libdtrain/"))


def table() -> list[tuple[str, str]]:
    paths = [("libdtrain/NAME.h", "dtrain/NAME.h"), ("data/NAME.h", "dtrain/data/NAME.h"),
             ("models/NAME.h", "dtrain/models/NAME.h"), *HEADERS.items()]
    rows = [(f'"{old}"', f'"{new}"') for old, new in paths]
    for scope, old, new in NAMES:
        rows.append((f"{scope}::{old}" if scope else old, f"{scope}::{new}" if scope else new))
    return list(dict.fromkeys([*rows, *((old, new) for old, new, *_ in EXPRESSIONS)]))


def rename(text: str) -> str:
    """Names in the scopes that the file opens or abbreviates."""
    aliases = [(name, scope.removeprefix("::")) for name, scope in ALIAS.findall(text)]
    opened = [""] if re.search(r"^namespace dtrain\b", text, re.M) else []
    opened += [scope.removeprefix("::") for scope in USING.findall(text)]
    for scope, old, new in NAMES:
        ways = {"::".join(filter(None, ("dtrain", scope)))} | {name for name, whole in aliases if whole == scope}
        ways |= {f"{name}::{scope.removeprefix(whole).removeprefix('::')}" for name, whole in aliases
                 if whole != scope and (not whole or scope.startswith(whole + "::"))}
        ways |= {scope.removeprefix(outer).removeprefix("::") for outer in opened
                 if scope == outer or not outer or scope.startswith(outer + "::")}
        for way in ways:
            prefix = rf"\b{way}::" if way else r"(?<![\w:.>])"
            text = re.sub(rf"({prefix}){old}\b", rf"\g<1>{new}", text)
    return text


def migrate(path: pathlib.Path) -> tuple[str, list[str]]:
    text, left = path.read_text(encoding="utf-8", errors="surrogateescape"), []
    if path.name.endswith(CMAKE):
        return re.sub(r"(find_package\(\s*dtrain\s+)0\.1\b", r"\g<1>0.2", text), left
    if not re.search(r'#\s*include\s*["<](?:libdtrain|models|data|dtrain)/', text):
        return text, left

    def header(found: re.Match) -> str:
        if (INCLUDE / new_header(found[2])).is_file() or found[2] == "libdtrain/version.h":
            return found[1] + new_header(found[2])
        if found[2].startswith("libdtrain/"):
            line = text.count("\n", 0, found.start()) + 1
            left.append(f"{path}:{line}: {found[2]} is private now: see docs/migration.md")
        return found[0]

    changed = INCLUDED.sub(header, text)
    for _, _, pattern, replacement in EXPRESSIONS:
        changed = re.sub(pattern, replacement, changed)
    return rename(changed), left


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        print("\n".join(f"{old} -> {new}" for old, new in table()))
        return 0
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.strip())
        return 0 if arguments == ["--help"] else 2
    if not INCLUDE:
        print("headers of dtrain 0.2 not found; expected them in ../include or /usr/include", file=sys.stderr)
        return 2
    left = []
    for path in sorted(path for folder in arguments for path in pathlib.Path(folder).rglob("*")):
        if not path.is_file() or not path.name.endswith(CODE + CMAKE):
            continue
        text, notes = migrate(path)
        left += notes
        if text != path.read_text(encoding="utf-8", errors="surrogateescape"):
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
            print(f"{path}: changed")
    print("".join(line + "\n" for line in left), end="")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
