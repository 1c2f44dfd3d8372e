// Table of launch_benchmark.py's arguments and their support.
#include "apps/cli/arguments.h"

#include "apps/launch_benchmark/translation.h"

namespace dtrain::launch_benchmark {
namespace {

constexpr char kNoContainer[] = "no container is started: programs run in this environment";
constexpr char kNoTcmalloc[] = "tensors are allocated from the engine's memory pools, not by malloc";
constexpr char kInput[] = "the input pipeline has one thread per core, shared by the ranks of a machine";
constexpr char kOther[] = "argument of another of Intel's models";

const std::vector<cli::Argument> kArguments = {
    {"framework,f", "string", "", "framework of the command line"},
    {"model-name,m", "string", "", "the model"},
    {"precision,p", "fp32|bfloat16|int8", "", "data type of activations; for int8 see dtrain-classify calibrate"},
    {"mode,mo", "training|inference", "", "training or inference"},
    {"batch-size,b", "string", "-1", "images per process; -1: 64"},
    {"data-location,d", "string", "", "folder of TFRecord files; synthetic data without it"},
    {"checkpoint,c", "string", "", "folder of the checkpoints"},
    {"num-intra-threads,a", "int", "", "compute threads per process; default: its cores"},
    {"num-inter-threads,e", "int", "", "concurrent ops"},
    {"mpi_num_processes", "int", "", "number of ranks that mpirun starts to train one model"},
    {"mpi_num_processes_per_socket", "int", "1", "processes per socket"},
    {"mpi_hostnames", "string", "", "host,host: hosts of the processes, distributed evenly"},
    {"numa-cores-per-instance", "string", "", "cores per process, or socket, for several independent processes"},
    {"socket-id,i", "string", "-1", "use the cores of one socket; -1: all"},
    {"num-cores,n", "string", "-1", "number of cores to use; -1: all"},
    {"output-dir", "string", "", "folder of the logs"},
    {"dry-run", "bool", "false", "dry run: print the commands"},
    {"benchmark-only,k", "bool", "false", "inference: measure throughput (default)"},
    {"accuracy-only", "bool", "false", "inference: evaluate the newest checkpoint"},
    {"verbose,v", "bool", "false", "say more", "", "commands are always printed"},
    {"model-source-dir,r", "string", "", "folder of a model's sources", "", "models are built in"},
    {"in-graph,g", "string", "", "frozen graph", "", "", "weights are read from --checkpoint"},
    {"backbone-model,bb", "string", "", "weights of a backbone", "", "", kOther},
    {"num-train-steps,ts", "int", "1", "training steps of other models", "", kOther},
    {"num-instances", "int", "1", "deprecated there", "", "", "--numa-cores-per-instance starts several"},
    {"output-results", "bool", "false", "write predictions to a file", "", "", "predictions are not written"},
    {"data-num-intra-threads", "int", "", "threads of the data layer", "", kInput},
    {"data-num-inter-threads", "int", "", "the same", "", kInput},
    {"disable-tcmalloc", "string", "True", "use the system's malloc", "", kNoTcmalloc},
    {"tcmalloc-large-alloc-report-threshold", "int", "2147483648", "bytes", "", kNoTcmalloc},
    {"weight-sharing", "bool", "false", "share weights between instances", "", "", "processes do not share memory"},
    {"optimized-softmax", "string", "True", "of Transformers", "", kOther},
    {"experimental-gelu", "string", "False", "of Transformers", "", kOther},
    {"tf-serving-version", "string", "master", "TensorFlow Serving", "", kOther},
    {"docker-image", "string", "", "image", "", kNoContainer},
    {"volume", "string", "", "mount", "", kNoContainer},
    {"shm-size", "string", "64m", "size of a container's shared memory", "", kNoContainer},
    {"noinstall", "bool", "false", "install nothing in the container", "", kNoContainer},
    {"debug", "bool", "false", "open a shell in the container", "", "", kNoContainer},
};

}  // namespace

void declare(cli::FlagSet& flags) { cli::declare(flags, "Arguments of launch_benchmark.py", kArguments); }

}  // namespace dtrain::launch_benchmark
