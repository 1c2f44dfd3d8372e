// What becomes of each argument of launch_benchmark.py, a table for users.
#include "apps/cli/arguments.h"

#include "apps/launch_benchmark/translation.h"

namespace dtrain::launch_benchmark {
namespace {

constexpr char kNoContainer[] = "no container is started: the programs run where this one does";
constexpr char kNoTcmalloc[] = "tensors are in pools of the engine, whichever malloc is used";
constexpr char kInput[] = "the input pipeline has a thread per core; ranks of one machine share them";
constexpr char kOther[] = "it belongs to another of Intel's models";

const std::vector<cli::Argument> kArguments = {
    {"framework,f", "string", "", "the framework that the command is written for"},
    {"model-name,m", "string", "", "the model"},
    {"precision,p", "fp32|bfloat16|int8", "", "type of activations; int8 is what dtrain-classify calibrate makes"},
    {"mode,mo", "training|inference", "", "what to do"},
    {"batch-size,b", "string", "-1", "images per process; -1: 64"},
    {"data-location,d", "string", "", "folder of TFRecord files; synthetic data without it"},
    {"checkpoint,c", "string", "", "folder of the checkpoints"},
    {"num-intra-threads,a", "int", "", "compute threads of a process; by default its cores"},
    {"num-inter-threads,e", "int", "", "operations at a time"},
    {"mpi_num_processes", "int", "", "ranks that train one model, started by mpirun"},
    {"mpi_num_processes_per_socket", "int", "1", "how many of them a socket has"},
    {"mpi_hostnames", "string", "", "host,host: where they run, as many on each"},
    {"numa-cores-per-instance", "string", "", "cores of each of several independent processes, or socket"},
    {"socket-id,i", "string", "-1", "use the cores of one socket; -1: all"},
    {"num-cores,n", "string", "-1", "use so many cores; -1: all"},
    {"output-dir", "string", "", "folder of the logs"},
    {"dry-run", "bool", "false", "print what would be started"},
    {"benchmark-only,k", "bool", "false", "inference: measure the speed, which is the default"},
    {"accuracy-only", "bool", "false", "inference: evaluate the newest checkpoint"},
    {"verbose,v", "bool", "false", "say more", "", "what is started is always said"},
    {"model-source-dir,r", "string", "", "folder of a model's sources", "", "the model is part of the programs"},
    {"in-graph,g", "string", "", "frozen graph", "", "", "weights are read from --checkpoint"},
    {"backbone-model,bb", "string", "", "weights of a backbone", "", "", kOther},
    {"num-train-steps,ts", "int", "1", "steps of other models", "", kOther},
    {"num-instances", "int", "1", "deprecated there", "", "", "--numa-cores-per-instance starts several"},
    {"output-results", "bool", "false", "write a file of results", "", "", "predictions are not written"},
    {"data-num-intra-threads", "int", "", "threads of the data layer", "", kInput},
    {"data-num-inter-threads", "int", "", "the same", "", kInput},
    {"disable-tcmalloc", "string", "True", "use the system's malloc", "", kNoTcmalloc},
    {"tcmalloc-large-alloc-report-threshold", "int", "2147483648", "bytes", "", kNoTcmalloc},
    {"weight-sharing", "bool", "false", "instances share weights", "", "", "processes do not share memory"},
    {"optimized-softmax", "string", "True", "of Transformers", "", kOther},
    {"experimental-gelu", "string", "False", "of Transformers", "", kOther},
    {"tf-serving-version", "string", "master", "TensorFlow Serving", "", kOther},
    {"docker-image", "string", "", "image", "", kNoContainer},
    {"volume", "string", "", "mount", "", kNoContainer},
    {"shm-size", "string", "64m", "shared memory of a container", "", kNoContainer},
    {"noinstall", "bool", "false", "install nothing in the container", "", kNoContainer},
    {"debug", "bool", "false", "open a shell in the container", "", "", kNoContainer},
};

}  // namespace

void declare(cli::FlagSet& flags) { cli::declare(flags, "Arguments of launch_benchmark.py", kArguments); }

}  // namespace dtrain::launch_benchmark
