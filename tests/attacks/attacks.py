"""Attacks on the programs, one row each: title, command, exit code, and a pattern that an output line must match.
Each command runs in an empty folder, in a shell with $D (a set of TFRecords), cnn (a short training of lenet on the
CPU) and scale (a small prediction). A row passes if the command ends by itself and no line of its output was forged by
the input. Each new program adds rows. `attacks.py WORD...` runs the rows with one of the words in their title or
command. With DTRAIN_SANITIZED, rows that limit the address space are skipped, because sanitizers reserve terabytes of
it.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from attack_results import finish

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", ROOT / "build" / "bin"))
LIMIT = 120  # seconds until a command counts as hanging
FORGED = "error: forged"

SHELL = """
PATH=$1:$PATH D=$2
ulimit -c 0
export OMP_NUM_THREADS=2  # memory limits must not depend on the number of cores
cnn() { dtrain-cnn-benchmarks --model=lenet --device=cpu --image_size=28 --batch_size=2 --num_warmup_batches=0 "$@"; }
scale() { dtrain-scale --images_per_sec=300 --batch_size=64 --gpus=1,8 "$@"; }
# COCO annotations: one image with this file name, width and height, and one object with this segmentation.
coco() {
  printf '{"images":[{"id":1,"file_name":"%s","width":%s,"height":%s}],"categories":[{"id":1,"name":"a"}],' "$1" $2 $3
  printf '"annotations":[{"id":1,"image_id":1,"category_id":1,"iscrowd":0,"segmentation":%s}]}' "$4"
}
# A JSON object with $1 keys.
keys() { seq 1 $1 | sed 's/.*/"&":0/' | paste -sd, | sed 's/.*/{&}/'; }
# 200 MB that take a second to read.
spaces() { head -c 200000000 /dev/zero | tr '\\0' ' ' > $1; }
# Sends SIGTERM to the last background command once it has opened the file $1.
stop_once_it_reads() {
  until ls -l /proc/$!/fd | grep -q $1; do kill -0 $! || break; sleep 0.02; done
  kill -TERM $!; wait $!
}
score() { echo '[]' > R.json; dtrain-mask-rcnn eval --annotations=A.json --results=R.json "$@"; }
# A safetensors file with this header, shorter than 256 bytes, and 16 zero bytes.
safetensors() { printf "\\x$(printf %x ${#1})\\0\\0\\0\\0\\0\\0\\0"; printf %s "$1"; head -c 16 /dev/zero; }
# Serves a training that the command "$1" has damaged, waits for the server to report it, and stops the server.
serve_broken() {
  cnn --num_batches=1 --train_dir=T >/dev/null 2>&1
  eval "$1"
  dtrain-serve --train_dir=T --device=cpu --port=0 > log 2>&1 &
  until grep -q 'cannot load' log; do kill -0 $! || break; sleep 0.05; done
  kill -TERM $!; wait $!; code=$?; cat log; return $code
}
serve() { dtrain-serve --device=cpu --port=0 "$@"; }
# A short training of model "$1"; classification with its weights in int8 with the calibration "$2".
train() { cnn --model=$1 --num_batches=1 --train_dir=$1 >/dev/null 2>&1; W=$1/checkpoints/step-1/model.safetensors; }
int8() { train $1; dtrain-classify --weights=$W --device=cpu --precision=int8 --calibration=$2 x.jpg; }
# The calibration c.json of lenet.
calibrate() { train lenet; dtrain-classify calibrate --weights=$W --data_dir=$D --num_images=4 --calibration=c.json; }
eval "$3"
"""

ROWS = [
    # Existing files.
    ("a plot to a full device", "mknod full c 1 7 && scale --plot=full; code=$?; [ -c full ] || exit 99; exit $code",
     6, r"full: No space left"),
    ("a plot through a link", "echo old > target; ln -s target link; scale --plot=link && [ -L link ] && "
     "grep -q svg target", 0, r""),
    ("a conversion to a full device", "train lenet; mknod full c 1 7; dtrain-convert $W full --to=npz; code=$?; "
     "[ -c full ] || exit 99; exit $code", 6, r"full: No space left"),
    ("a conversion over another file", "train lenet; echo dear > w.npz; dtrain-convert $W w.npz; code=$?; "
     "grep -q dear w.npz || exit 99; exit $code", 1, r"error: w\.npz: exists; give --force to replace it, or another name$"),
    ("metrics over another file", "echo dear > letter; cnn --num_batches=1 --metrics_file=letter; code=$?; "
     "grep -q dear letter || exit 99; exit $code", 2, r"error: metrics file letter, line 1: not a JSON object"),
    ("a report to a full device", "mknod full c 1 7 && echo '{\"step\":1,\"loss\":2}' > m.jsonl && dtrain-report m.jsonl "
     "--output=full; code=$?; [ -c full ] || exit 99; exit $code", 6, r"full: No space left"),
    ("a huge metrics file", "{ echo '{\"step\":1}'; printf '{\"step\":'; } > m.jsonl; truncate -s 20G m.jsonl; ulimit -v "
     "4000000; cnn --num_batches=1 --metrics_file=m.jsonl; code=$?; [ $(stat -c %s m.jsonl) = 21474836480 ] || exit 99; "
     "exit $code", 2, r"error: metrics file m\.jsonl, line 2: not a JSON object"),
    ("a huge CSV metrics file", "echo step,loss > m.csv; truncate -s 20G m.csv; ulimit -v 4000000; cnn "
     "--num_batches=1 --metrics_file=m.csv; code=$?; [ $(stat -c %s m.csv) = 21474836480 ] || exit 99; exit $code", 2,
     r"error: metrics file m\.csv, line 2: not comma-separated values"),
    ("a report of a text file", "echo dear > letter; dtrain-report letter", 2,
     r"error: letter, line 1: no line of a metrics file"),
    ("a report of an empty folder", "mkdir N; dtrain-report N; code=$?; [ ! -e report.html ] || exit 99; exit $code", 2,
     r"error: N: no run, expected a folder"),
    ("a report of nested brackets", "{ head -c 60000 /dev/zero | tr '\\0' '['; echo; } > m.jsonl; dtrain-report m.jsonl", 2,
     r"error: m\.jsonl, line 1: no line"),
    ("a report of a run with line breaks in its name", "N=$(printf 'a\\nerror: forged'); mkdir \"$N\"; dtrain-report \"$N\"", 2,
     r"error: a\\nerror"),
    ("a gallery with paths outside of its folder", "mkdir -p R/g; printf '{\"title\":\"\",\"notes\":[],\"score_name\":\"F1\",\"worst\":"
     "[{\"picture\":\"../../secret.png\"}],\"best\":[],\"classes\":[]}' > R/g/gallery.json; dtrain-report R", 0,
     r"note: R/g/gallery.json: a picture that is not in the folder"),
    ("a huge gallery", "mkdir -p R/g; { printf '{\"title\":\"\",\"notes\":[],\"score_name\":\"F1\",\"best\":[],"
     "\"classes\":[],\"worst\":[{\"picture\":\"/\"}'; yes ',{\"picture\":\"/\"}' | head -n 400000; printf ']}'; } > "
     "R/g/gallery.json; dtrain-report R > log 2>&1; code=$?; [ $(wc -l < log) -lt 200 ] || exit 99; cat log; "
     "[ $(stat -c %s report.html) -lt 1000000 ] || exit 98; exit $code", 0,
     r"note: R/g/gallery\.json: 399901 of the 400001 items of .worst. are left out"),
    ("many galleries with notices", "for i in 1 2 3 4 5 6; do mkdir -p R/$i; { printf '{\"title\":\"\",\"notes\":[],\"score_name\":"
     "\"F1\",\"best\":[],\"classes\":[],\"worst\":[{\"picture\":\"/\"}'; yes ',{\"picture\":\"/\"}' | head -n 99; printf "
     "']}'; } > R/$i/gallery.json; done; dtrain-report R > log 2>&1; code=$?; [ $(wc -l < log) -lt 510 ] || exit 99; "
     "cat log; exit $code", 0, r"note: R: 100 more notices are left out"),
    ("a gallery of many keys", "mkdir -p R/g; keys 80000 > R/g/gallery.json; timeout 60 dtrain-report R", 2,
     r"error: R/g/gallery.json: JSON object of more than 10000 keys"),
    ("statistics of many keys", "mkdir R; { printf '['; keys 80000; printf ']'; } > R/stats.json; timeout 60 dtrain-report R",
     2, r"error: R/stats.json: JSON object of more than 10000 keys"),
    ("a huge image of a report", "truncate -s 20G x.jpg; echo '{\"file\":\"x.jpg\",\"top\":[{\"class\":1,"
     "\"probability\":1}]}' > p.jsonl; ulimit -v 1000000; dtrain-report p.jsonl", 0,
     r"note: .*x\.jpg: 21474836480 bytes, expected at most 268435456"),
    ("a report of a million errors", "mkdir R; echo '{\"step\":1,\"loss\":2}' > R/m.jsonl; yes 'error: forged' | "
     "head -n 1000000 > R/a.log; dtrain-report R; [ $(stat -c %s report.html) -lt 1000000 ] || exit 99", 0,
     r"note: R/a\.log: 999499 more events of the kind .failure. are left out"),
    ("a report over its metrics", "echo '{\"step\":1,\"loss\":2}' > m.jsonl; cp m.jsonl kept; dtrain-report m.jsonl "
     "--output=./m.jsonl; code=$?; cmp m.jsonl kept || exit 99; exit $code", 1,
     r"error: --output=\./m\.jsonl: exists and was not written by dtrain-report"),
    ("a report over the page of a gallery", "mkdir -p R/g; echo '{\"step\":1,\"loss\":2}' > R/m.jsonl; printf '<!DOCTYPE "
     "html>\\n<html lang=\"en\">\\n<head>\\n<meta charset=\"utf-8\">\\n' > R/g/index.html; cp R/g/index.html kept; dtrain-report R "
     "--output=R/g/index.html; code=$?; cmp R/g/index.html kept || exit 99; exit $code", 1,
     r"error: --output=R/g/index\.html: exists and was not written by dtrain-report"),
    ("a report over a text file", "echo dear > letter; echo '{\"step\":1,\"loss\":2}' > m.jsonl; dtrain-report m.jsonl "
     "--output=letter; code=$?; grep -q dear letter || exit 99; exit $code", 1,
     r"error: --output=letter: exists and was not written by dtrain-report"),
    ("a report after another in a redirected stdout", "echo '{\"step\":1,\"loss\":2}' > m.jsonl; echo dear > all; "
     "dtrain-report m.jsonl --output=/dev/stdout >> all && grep -q dear all && grep -q '</html>' all", 0, r""),
    ("a report over a checkpoint, by a link", "mkdir -p R/checkpoints; echo '{\"step\":1,\"loss\":2}' > R/m.jsonl; "
     "echo kept > R/checkpoints/x; ln -s R/checkpoints/x page; dtrain-report R --output=page; code=$?; "
     "grep -q kept R/checkpoints/x || exit 99; exit $code", 1,
     r"error: --output=page: exists and was not written by dtrain-report"),
    ("a report in the folder of its run, twice", "mkdir R; echo '{\"step\":1,\"loss\":2}' > R/m.jsonl; dtrain-report R "
     "--output=R/report.html >/dev/null && dtrain-report R --output=R/report.html", 0, r"Report: "),
    ("a report over one of a version without a generator mark", "mkdir R; echo '{\"step\":1,\"loss\":2}' > R/m.jsonl; "
     "dtrain-report R >/dev/null && sed -i '/name=\"generator\"/d' report.html && dtrain-report R && "
     "grep -q 'name=\"generator\"' report.html", 0, r"Report: "),
    ("a huge image", "train lenet; truncate -s 20G x.jpg; ulimit -v 4000000; dtrain-classify --weights=$W "
     "--device=cpu x.jpg", 2, r"x\.jpg: 21474836480 bytes, expected at most 268435456"),
    ("closed descriptors", "cnn --num_batches=2 --data_dir=$D --train_dir=T <&- >&-; [ $? = 0 ] && "
     "! grep -q image T/lock && head -c 300 T/checkpoints/step-2/model.safetensors | grep -aq __metadata__", 0, r""),
    ("a linked leftover", "mkdir -p T/checkpoints DIR; touch DIR/kept; ln -s ../../DIR T/checkpoints/step-40.tmp-1-2; "
     "cnn --num_batches=1 --train_dir=T; code=$?; [ -e DIR/kept ] || exit 99; exit $code", 0, r""),
    ("a linked lock", "mkdir T; echo kept > target; ln -s ../target T/lock; cnn --num_batches=1 --train_dir=T; "
     "grep -q kept target", 0, r""),
    ("a linked configuration", "mkdir T; echo kept > target; ln -s ../target T/config.toml; "
     "cnn --num_batches=1 --train_dir=T; grep -q kept target && grep -q num_batches T/config.toml", 0, r""),
    ("a train_dir in a bucket", "cnn --num_batches=1 --train_dir=gs://bucket/run; code=$?; [ ! -e gs: ] || exit 99; "
     "exit $code", 1, r"error: --train_dir: expected a local path, found the URL gs://bucket/run: mount"),
    ("a configuration of nested brackets", "{ printf 'x = '; head -c 100000 /dev/zero | tr '\\0' '['; } > c.toml; "
     "cnn --config=c.toml", 1, r"error: c\.toml:1: "),
    ("a configuration with a deeply nested key", "{ printf a; head -c 16000 /dev/zero | sed 's/\\x00/.a/g'; echo ' = 1'; } > c.toml; "
     "cnn --config=c.toml", 1, r"error: c\.toml:1: a key or value of more than 16 parts"),
    ("a configuration with a line break in a key", "printf '\"a\\\\nerror: forged\" = 1\\n' > c.toml; cnn --config=c.toml", 1,
     r"error: c\.toml:1: unknown flag a\\nerror"),
    ("a configuration that is a folder", "mkdir c.toml; cnn --config=c.toml", 1, r"error: .*c\.toml"),
    # Numbers.
    ("more checkpoints than an int can count", "cnn --num_batches=8 --train_dir=T --save_model_steps=1 "
     "--max_ckpts_to_keep=2147483648 >/dev/null && [ $(ls T/checkpoints | wc -l) = 8 ]", 0, r""),
    ("a save after 300 years", "cnn --num_batches=20 --train_dir=T --save_model_secs=10000000000; code=$?; "
     "[ $(ls -d T/checkpoints/step-* 2>/dev/null | wc -l) -le 1 ] || exit 99; [ $code -le 1 ]", 0, r""),
    ("threads by the flag", "cnn --num_batches=1 --num_intra_threads=32000", 1, r"error: .*num_intra_threads"),
    ("threads by the environment", "OMP_NUM_THREADS=32000 cnn --num_batches=1", 1, r"error: .*OMP_NUM_THREADS"),
    ("an endless epoch", "cnn --num_epochs=1e19 --data_dir=$D", 1, r"error: .* epochs"),
    ("a limit of 292 years", "cnn --num_batches=1 --collective_timeout=9223372036", 1, r"error: .*collective_timeout"),
    ("a checkpoint of 292 years", "cnn --num_batches=1 --train_dir=T --checkpoint_timeout=9223372036", 1,
     r"error: .*checkpoint_timeout"),
    ("endless accumulation", "cnn --num_batches=1 --gradient_accumulation=10000000000", 1,
     r"error: .*gradient_accumulation"),
    ("a huge image size", "cnn --num_batches=1 --image_size=100000", 1, r"error: .*image_size"),
    ("negative number of workers", "cnn --num_batches=1 --data_dir=$D --datasets_num_private_threads=-1", 1,
     r"error: .*datasets_num_private_threads"),
    # Output errors.
    ("stderr on a full device", "cnn --num_batches=1 --model=none 2>/dev/full", 1, r""),
    ("a file size limit", "ulimit -f 1; cnn --num_batches=1 --train_dir=T", 6, r"File too large"),
    ("too few descriptors", "ulimit -n 5; cnn --num_batches=2 --data_dir=$D --train_dir=T", 6, r"error: "),
    ("metrics to a pipe without a reader", "mkfifo pipe; dtrain-cnn-benchmarks --model=lenet --device=cpu --batch_size=2 "
     "--image_size=28 --num_batches=100000000 --metrics_file=pipe > log & "
     "until grep -q images/sec log; do sleep 0.1; done; kill -TERM $!; wait $!", 75, r"stopped on request"),
    # Checkpoints.
    ("a state of nested brackets", "cnn --num_batches=2 --train_dir=T >/dev/null 2>&1; head -c 60000000 /dev/zero | "
     "tr '\\0' '[' > T/checkpoints/step-2/state.json; ulimit -v 4000000; cnn --num_batches=4 --train_dir=T", 5,
     r"error: .*step-2"),
    ("a flipped bit in the newest state", "cnn --num_batches=4 --save_model_steps=2 --train_dir=T >/dev/null 2>&1; "
     "sed -i 's/cursor/dursor/' T/checkpoints/step-4/state.json; cnn --num_batches=6 --train_dir=T", 0,
     r"Restored step 2"),
    ("folders that look like checkpoints", "mkdir -p T/checkpoints/step- T/checkpoints/step-007; "
     "cnn --num_batches=1 --train_dir=T", 0, r""),
    ("a loop of links among the checkpoints", "cnn --num_batches=1 --train_dir=T >/dev/null 2>&1; "
     "ln -s step-5 T/checkpoints/step-5; cnn --num_batches=2 --train_dir=T", 0, r"Restored step 1"),
    ("only a loop of links", "mkdir -p T/checkpoints; ln -s step-5 T/checkpoints/step-5; "
     "cnn --num_batches=1 --train_dir=T && [ -d T/checkpoints/step-1 ]", 0, r"step-5 is a link that cannot be followed"),
    ("only a dangling link", "mkdir -p T/checkpoints; ln -s /archive/step-5 T/checkpoints/step-5; "
     "cnn --num_batches=1 --train_dir=T", 5, r"error: no usable checkpoint in T/checkpoints: .*step-5 is a link"),
    ("a loop in place of checkpoints/", "mkdir T; ln -s checkpoints T/checkpoints; cnn --num_batches=1 --train_dir=T",
     5, r"error: T/checkpoints: Too many levels of symbolic links"),
    ("a loop in place of a manifest", "mkdir step-5; ln -s MANIFEST.json step-5/MANIFEST.json; "
     "cnn --num_batches=1 --train_dir=T --resume=step-5", 5, r"error: step-5"),
    ("a loop in place of the best checkpoint", "mkdir T; ln -s best T/best; cnn --num_batches=1 --train_dir=T && "
     "[ -d T/checkpoints/step-1 ]", 0, r""),
    # Data.
    ("a gzip bomb", "mkdir E; head -c 100000000 /dev/zero | gzip > E/train-00000-of-00001; "
     "cnn --num_batches=1 --data_dir=E", 2, r"error: .*train-00000-of-00001"),
    ("no records at all", "mkdir E; : > E/train-00000-of-00001; cnn --num_batches=1 --data_dir=E", 2, r"error: .*E"),
    ("weights of another model", "cnn --num_batches=1 --train_dir=T >/dev/null 2>&1; dtrain-classify --model=resnet18 "
     "--weights=T/checkpoints/step-1/model.safetensors x.jpg", 1, r"error: --model=resnet18: .* was trained with lenet"),
    ("annotations of nested brackets", "head -c 60000000 /dev/zero | tr '\\0' '[' > A.json; ulimit -v 4000000; score", 2,
     r"error: A.json: "),
    ("an image outside of its folder", "mkdir -p annotations train; coco ../../etc/passwd 9 9 '[[0,0,5,0,5,5]]' > "
     "annotations/instances_train.json; dtrain-data coco --input=. --output=R", 2, r"error: .*: image 1: file_name leads "
     "out"),
    ("a URL outside of its folder", "mkdir -p annotations train; printf '{\"images\":[{\"id\":1,\"coco_url\":"
     "\"http://h//secret.png\"}],\"categories\":[],\"annotations\":[]}' > annotations/instances_train.json; "
     "dtrain-data coco --input=. --output=R", 2, r"error: .*: no file secret\.png"),
    ("a name of ten megabytes", "coco \"$(head -c 10000000 /dev/zero | tr '\\0' '/')a\" 9 9 '[[0,0,5,0,5,5]]' > A.json; "
     "mkdir -p annotations train; mv A.json annotations/instances_train.json; dtrain-data coco --input=. --output=R", 2,
     r"error: .*image 1: a file name of 10000001 bytes"),
    ("a mask of four billion pixels", "coco a.jpg 65535 65535 '{\"size\":[65535,65535],\"counts\":[4294836225]}' > A.json; "
     "ulimit -v 4000000; score --iou_type=segm --strict", 2, r"error: A.json: "),
    ("a mask of another size", "coco a.jpg 9 9 '{\"size\":[8,8],\"counts\":[64]}' > A.json; score --strict", 2,
     r"error: A.json: masks of another size than their image, which nothing matches: 1 \(first: annotation 1: "),
    ("a polygon around the world", "coco a.jpg 9 9 '[[0,0,1e300,0,1e300,1e300]]' > A.json; score --iou_type=segm "
     "--strict", 2, r"error: A.json: .*beyond 1e6: 1 \(first: annotation 1\)"),
    ("the same without --strict", "coco a.jpg 9 9 '[[0,0,1e300,0,1e300,1e300]]' > A.json; score --iou_type=segm", 0,
     r"note: A.json: .*beyond 1e6: 1 left out \(first: annotation 1\)"),
    ("fifty thousand categories", "{ printf '{\"images\":[],\"annotations\":[],\"categories\":[{\"id\":1,\"name\":\"a\"}'; "
     "seq 2 50000 | sed 's/.*/,{\"id\":&,\"name\":\"c&\"}/'; printf ']}'; } > A.json; ulimit -v 2000000; score", 0, r""),
    ("a request to stop while annotations are read", "mkdir -p annotations train2017; spaces annotations/instances_train2017.json; "
     "dtrain-mask-rcnn train --device=cpu --data_dir=. & stop_once_it_reads instances_train2017", 75,
     r"note: stopped on request while opening the data"),
    ("a request to stop while annotations to serve are read", "mkdir I; spaces A.json; dtrain-serve --device=cpu --port=0 "
     "--train_dir=T --images=I --annotations=A.json & stop_once_it_reads A.json", 0, r""),
    ("a forged error in the name of an image", "coco 'x\\nerror: forged' 9 0 '[]' > A.json; score --strict", 2,
     r"error: "),
    ("weights of random bytes", "head -c 300 /dev/urandom > w; dtrain-mask-rcnn predict --device=cpu --load=w x.jpg",
     5, r"error: w: "),
    ("a pickle that runs a command as weights to convert", "printf "
     "'\\200\\002cposix\\nsystem\\nU\\014touch danger\\205R.' > w; dtrain-mask-rcnn convert --from=w --to=x.npz; "
     "code=$?; [ ! -e x.npz ] && [ ! -e danger ] || exit 99; exit $code", 5, r"error: w: byte 2 of the pickle: it names "
     r"posix\.system"),
    ("weights with a forged error as a name", r"""safetensors '{"x\nerror: forged":{"dtype":"F32","shape":[],"""
     r""""data_offsets":[0,4]},"rpn.head.cls_logits.bias":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}}' > w; """
     "dtrain-mask-rcnn convert --from=w --to=x.npz", 0, r"Left over: +1"),
    ("a development kit of gigabytes", "head -c 200000000 /dev/zero | gzip > kit.tar.gz; ulimit -v 4000000; dtrain-data "
     "imagenet-labels kit.tar.gz --output=L; code=$?; [ ! -e L ] || exit 99; exit $code", 2,
     r"error: kit\.tar\.gz: unpacks to more than 64 MiB"),
    ("an endless development kit", "dtrain-data imagenet-labels /dev/zero", 2,
     r"error: /dev/zero: .* expected a regular file$"),
    # Calibrations.
    ("a missing calibration", "int8 lenet c.json", 2, r"error: open c\.json: No such file or directory$"),
    ("a calibration that is a folder", "mkdir c.json; int8 lenet c.json", 2,
     r"error: c\.json: is a directory, expected a file$"),
    ("a calibration that is a pipe", "mkfifo pipe; int8 lenet pipe", 2,
     r"error: pipe: is a FIFO, .* expected a regular file$"),
    ("an endless calibration", "int8 lenet /dev/zero", 2, r"error: /dev/zero: .* expected a regular file$"),
    ("a calibration of nested brackets", "head -c 4000000 /dev/zero | tr '\\0' '[' > c.json; ulimit -v 4000000; "
     "int8 lenet c.json", 2, r"error: c\.json: JSON nested more than 4 deep; make one by dtrain-classify calibrate$"),
    ("a calibration of gigabytes", "truncate -s 9G c.json; ulimit -v 4000000; int8 lenet c.json", 2,
     r"error: c\.json: 9663676416 bytes, expected at most 4194304$"),
    ("a truncated calibration", "calibrate; head -c 300 c.json > cut; int8 lenet cut", 2,
     r"error: cut: invalid JSON .*; make one by dtrain-classify calibrate$"),
    ("a changed scale in a calibration", "calibrate; sed -i '0,/\"scale\": /s//&1/' c.json; int8 lenet c.json", 2,
     r"error: c\.json: damaged: checksum mismatch; make one by dtrain-classify calibrate$"),
    ("a calibration of another model", "calibrate; int8 trivial c.json", 1,
     r"error: c\.json: a calibration for model lenet, expected trivial; make one by dtrain-classify calibrate$"),
    ("a calibration with a forged error as a name", r"""echo '{"format":"dtrain calibration 1","identity":{},"""
     r""""weights":"","ranges":"","images":1,"layers":{"x\nerror: forged":{"x":{"scale":0,"zero":0}}}}' > c.json; """
     "int8 lenet c.json", 2, r"error: c\.json: damaged: x\\nerror: forged: scale is 0, expected a positive number"),
    # Forged text and malformed flags.
    ("a forged error in a path", "cnn --num_batches=1 --data_dir=$'x\\nerror: forged'", 2, r"error: "),
    ("a forged error in a flag", "cnn --model=$'x\\nerror: forged'", 1, r"error: "),
    ("a negated switch with a value", "dtrain-cnn-benchmarks --noeval=3", 1, r"error: "),
    # Front ends.
    ("a log through a link", "mkdir T; echo kept > target; ln -s ../target T/hvd_train.log; dtrain-train-imagenet "
     "--synthetic --nofp16 -b 1 --num_batches=1 --log_dir=T -- --model=resnet20 --image_size=16; code=$?; "
     "[ \"$(cat target)\" = kept ] || exit 99; exit $code", 1, r"error: .*hvd_train.log"),
    ("a log folder with other files", "mkdir -p T/mine; dtrain-train-imagenet --synthetic --nofp16 -b 1 "
     "--num_batches=1 --log_dir=T --clear_log -- --model=resnet20 --image_size=16; [ -d T/mine ]", 0, r"Finished in"),
    ("a seed of letters", "dtrain-imagenet-main two --use_synthetic_data", 1, r"error: expected an integer"),
    ("a forged error for a launcher", "dtrain-launch-benchmark -f tensorflow -m resnet50v1_5 -p fp32 -mo training "
     "--dry-run -d $'x\\nerror: forged'", 0, r"dtrain-imagenet-main 2 "),
    ("a launcher whose log cannot be written", "ulimit -f 0; dtrain-launch-benchmark -f tensorflow -m resnet50v1_5 "
     "-p fp32 -mo training -b 1 --output-dir=T -- steps=1 train_epochs=1 --model=resnet20 --image_size=16", 6,
     r"error: "),
    # The server. Malicious clients are in tests/serve.
    ("random bytes as weights to serve", "head -c 300 /dev/urandom > w; serve --model=ssd300 --weights=w", 5,
     r"error: w: "),
    ("a pickle as weights to serve", "printf '\\200\\002}q\\000.' > w; serve --model=mask_rcnn --weights=w", 5,
     r"error: w: "),
    ("endless weights to serve", "serve --model=lenet --weights=/dev/zero", 5, r"error: /dev/zero: "),
    ("an endless calibration to serve", "serve --train_dir=T --precision=int8 --calibration=/dev/zero", 2,
     r"error: /dev/zero: .* expected a regular file$"),
    ("a flipped bit in weights to serve", "serve_broken 'printf x | dd of=T/checkpoints/step-1/model.safetensors bs=1 "
     "seek=9000 conv=notrunc status=none'", 0, r"warning: cannot load a checkpoint: .*model\.safetensors"),
    ("a flipped bit in a state to serve", "serve_broken 'sed -i s/cursor/dursor/ T/checkpoints/step-1/state.json'", 0,
     r"warning: cannot load a checkpoint: .*state\.json"),
    ("images to serve outside of their folder", "coco ../../etc/passwd 9 9 '[[0,0,5,0,5,5]]' > A.json; serve --train_dir=T "
     "--images=. --annotations=A.json", 2, r"error: A.json: image 1: "),
    ("annotations to serve of nested brackets", "head -c 60000000 /dev/zero | tr '\\0' '[' > A.json; ulimit -v 4000000; serve "
     "--train_dir=T --images=. --annotations=A.json", 2, r"error: A.json: "),
    ("a world-readable token", "echo 0123456789abcdef > t; chmod 644 t; serve --train_dir=T --token_file=t", 1,
     r"error: --token_file=t: "),
    ("a short token", "DTRAIN_SERVE_TOKEN=secret serve --train_dir=T", 1, r"error: .*16"),
    ("a forged error in the name of the model", "serve --train_dir=T --name=$'x\\nerror: forged'", 1,
     r"error: --name=x\\nerror"),
    ("a forged error in the folder of images to serve", "serve --train_dir=T --images=$'x\\nerror: forged'", 2,
     r"error: --images=x\\nerror"),
    # The network.
    ("a job without a secret on a network", "DTRAIN_RANK=0 DTRAIN_SIZE=2 DTRAIN_MASTER_ADDR=0.0.0.0 "
     "DTRAIN_MASTER_PORT=29777 cnn --num_batches=1 --variable_update=horovod --collective_timeout=5", 1,
     r"error: .*secret"),
]


def run(row, data):
    """The reason of the failure, or "" if the row passes."""
    name, command, code, pattern = row
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(["bash", "-c", SHELL, "attack", PROGRAMS, data, command], cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return f"{name}: no end within {LIMIT} s"
    lines = output.splitlines()
    problems = [] if process.returncode == code else [f"exit code {process.returncode}, expected {code}"]
    if pattern and not any(re.search(pattern, line) for line in lines):
        problems.append(f"no line matches {pattern!r}")
    if any(line.startswith(FORGED) for line in lines):
        problems.append("a line was forged")
    return f"{name}: {'; '.join(problems)}\n" + "\n".join(f"    {line}" for line in lines[-12:]) if problems else ""


def main():
    words = sys.argv[1:] or [""]
    rows = [row for row in ROWS if any(word in row[0] or word in row[1] for word in words)]
    if "DTRAIN_SANITIZED" in os.environ:
        rows = [row for row in rows if "ulimit -v" not in row[1]]
    with tempfile.TemporaryDirectory() as data, concurrent.futures.ThreadPoolExecutor(2) as pool:
        subprocess.run([PROGRAMS / "dtrain-data", "synthesize", "--output", f"{data}/D", "--train", "16",
                        "--validation", "4", "--image_size", "32", "--shards", "2"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        problems = [problem for problem in pool.map(lambda row: run(row, f"{data}/D"), rows) if problem]
    finish(problems, len(rows))


if __name__ == "__main__":
    main()
