#!/usr/bin/env bash
# release_tools.sh COMPILER: checks scripts/release/check_symbols.sh, check_paths.sh and make_wheel.py with a program and
# a library that are made here. The wheel is installed by pip, which reads it independently.
set -Eeuo pipefail
compiler=$1
release=$(cd "$(dirname "$0")/../../scripts/release" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'echo "ERROR: line $LINENO: $BASH_COMMAND"; cat "$place"/*.log 2>/dev/null' ERR
cd "$place"
fails_with() {  # PATTERN COMMAND...: the command fails and prints the pattern
  local pattern=$1
  shift
  if "$@" >fails.log 2>&1; then return 1; fi
  grep -q "$pattern" fails.log
}

stage=$place/stage
mkdir -p "$stage"/{bin,lib/dtrain,lib/cmake/dtrain,include/dtrain,share/doc/dtrain/licences}
echo 'extern "C" int answer() { return 42; }' >answer.cpp
cat >program.cpp <<'END'
#include <cstdio>
#include <cstdlib>
extern "C" int answer();
int main(int count, char** arguments) {
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  std::printf("%d %s %s\n", answer(), count > 1 ? arguments[1] : "", path ? path : "");
}
END
"$compiler" -shared -fPIC -o "$stage/lib/dtrain/libanswer.so.0" -Wl,-soname,libanswer.so.0 answer.cpp
"$compiler" -static-libstdc++ -static-libgcc -Wl,--as-needed -o "$stage/bin/dtrain-answer" program.cpp \
  "$stage/lib/dtrain/libanswer.so.0" -Wl,-rpath,"\$ORIGIN/../lib/dtrain"
echo 'set(answer 42)' >"$stage/lib/cmake/dtrain/dtrain-config.cmake"
echo '// public' >"$stage/include/dtrain/dtrain.h"
echo 'licence of answer' >"$stage/share/doc/dtrain/licences/answer"

# Symbols. Every program needs printf, which has the version 2.2.5 on x86-64.
"$release/check_symbols.sh" 9.9 "$stage" >symbols.log
grep -q '^2 ELF files' symbols.log
fails_with 'bin/dtrain-answer: needs printf of glibc 2.2.5; expected at most 2.1$' \
  "$release/check_symbols.sh" 2.1 "$stage"
mv "$stage/lib/dtrain/libanswer.so.0" .
fails_with 'bin/dtrain-answer: needs libanswer.so.0, which' "$release/check_symbols.sh" 9.9 "$stage"
mv libanswer.so.0 "$stage/lib/dtrain/"
fails_with 'there are no ELF files' "$release/check_symbols.sh" 9.9 "$stage/include"

# Build paths: of text files and of code, but not of device code.
"$release/check_paths.sh" "$stage" "$place" /nowhere
echo "built in $place/stage" >"$stage/share/notes"
fails_with "share/notes: contains the build path built in $place/stage" "$release/check_paths.sh" "$stage" "$place"
rm "$stage/share/notes"
cp "$stage/bin/dtrain-answer" .
echo "$place/answer.cu" >section
objcopy --add-section .other=section dtrain-answer "$stage/bin/dtrain-answer"
fails_with "dtrain-answer: contains the build path $place/answer.cu" "$release/check_paths.sh" "$stage" "$place"
objcopy --add-section .nv_fatbin=section dtrain-answer "$stage/bin/dtrain-answer"
"$release/check_paths.sh" "$stage" "$place"
mv dtrain-answer "$stage/bin/"

ln -s libanswer.so.0 "$stage/lib/dtrain/libanswer.so"
# The wheel: the same bytes from a copy with other times; all files installed by pip; programs as entry points.
export SOURCE_DATE_EPOCH=1700000000
mkdir one two
wheel=$("$release/make_wheel.py" "$stage" 1.2.3 one)
cp -a "$stage" copy
touch -d 2020-01-01 copy/*/*
"$release/make_wheel.py" copy 1.2.3 two >/dev/null
cmp "$wheel" "two/${wheel#one/}"
[ "$wheel" = one/dtrain-1.2.3-py3-none-manylinux_2_31_x86_64.whl ]
python3 - "$wheel" <<'END'
import base64, csv, hashlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    rows = {row[0]: row[1:] for row in csv.reader(wheel.read("dtrain-1.2.3.dist-info/RECORD").decode().splitlines())}
    assert list(rows) == wheel.namelist()
    for name, (digest, size) in list(rows.items())[:-1]:
        data = wheel.read(name)
        assert len(data) == int(size), name
        assert base64.urlsafe_b64decode(digest.removeprefix("sha256=") + "=") == hashlib.sha256(data).digest(), name
END
python3 -m venv venv >venv.log 2>&1
venv/bin/pip install --no-index --no-deps --quiet "$wheel" >pip.log 2>&1
prefix=$(venv/bin/python -m dtrain --prefix)
diff -r "$stage" "$prefix" -x __init__.py -x __main__.py -x __pycache__ -x libanswer.so
[ ! -e "$prefix/lib/dtrain/libanswer.so" ]
[ "$(cat "$(venv/bin/python -m dtrain --cmake-dir)/dtrain-config.cmake")" = 'set(answer 42)' ]
[ "$(env -u LD_LIBRARY_PATH venv/bin/dtrain-answer one)" = '42 one ' ]
mkdir -p "$prefix/../nvidia/cudnn/lib"
[ "$(LD_LIBRARY_PATH=/mine venv/bin/dtrain-answer)" = "42  $(realpath "$prefix/..")/nvidia/cudnn/lib:/mine" ]
venv/bin/pip show --files dtrain >show.log
grep -q 'licenses/answer' show.log
