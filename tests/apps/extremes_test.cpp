// Extreme flag values and system limits: one clear line and the documented exit code.
#include <sys/mount.h>
#include <unistd.h>

#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

// Exit code of the dynamic linker if libraries cannot be opened.
constexpr int kNotLoaded = 127;

// Runs a program after a shell command, such as one that sets limits.
ProgramResult run_after(const std::string& line, const std::string& program, const Arguments& arguments) {
  const std::string path = std::filesystem::absolute(bin_dir() / program).string();
  return run_program("/bin/sh", Arguments{"-c", line + "; exec \"$0\" \"$@\"", path} + arguments);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Expects one error line, without messages of the system.
void expect_error_line(const ProgramResult& result, int code, const std::string& part) {
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_EQ(count_of(result.err, "error: "), 1u) << result.err;
  EXPECT_TRUE(contains(result.err, part)) << "no \"" << part << "\" in\n" << result.err;
  EXPECT_FALSE(contains(result.err, "internal error")) << result.err;
}

Arguments lenet() {
  return {"--model=lenet", "--device=cpu", "--batch_size=2", "--num_batches=2", "--num_warmup_batches=0"};
}

// A number outside of all ranges.
TEST(ExtremeValues, EveryNumberHasARange) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: hundreds of starts of programs, which sanitizers slow down most";
  const std::set<std::string> unlimited = {"tf_random_seed"}, above = {"seed"};
  const std::vector<Arguments> programs = {{"dtrain-cnn-benchmarks"},
                                           {"dtrain-classify"},
                                           {"dtrain-convert"},
                                           {"dtrain-report"},
                                           {"dtrain-serve"},
                                           {"dtrain-scale"},
                                           {"dtrain-info"},
                                           {"dtrain-allreduce-benchmark"},
                                           {"dtrain-data", "imagenet"},
                                           {"dtrain-data", "synthesize"},
                                           {"dtrain-data", "shapes"},
                                           {"dtrain-data", "cifar10"},
                                           {"dtrain-data", "inspect"},
                                           {"dtrain-data", "verify"},
                                           {"dtrain-data", "index"},
                                           {"dtrain-data", "throughput"}};
  size_t flags = 0;
  for (const Arguments& program : programs) {
    const Arguments command(program.begin() + 1, program.end());
    std::istringstream help(run_program(program[0], command + Arguments{"--help"}).out);
    const std::regex declared(R"(  --(\w+) \((int|float)[^)]*\))");
    for (std::string line; std::getline(help, line);) {
      std::smatch found;
      if (!std::regex_match(line, found, declared) || unlimited.contains(found[1])) continue;
      ++flags;
      const bool whole = found[2] == "int";
      for (const char* number : {whole ? "9223372036854775807" : "1e300", whole ? "-9223372036854775808" : "-1e300"}) {
        if (number[0] != '-' && above.contains(found[1])) continue;
        const std::string flag = "--" + found[1].str();
        const ProgramResult result = run_program(program[0], command + Arguments{flag + "=" + number});
        expect_error_line(result, 1, "error: " + flag + ": expected ");
        EXPECT_TRUE(contains(result.err, std::string("found ") + number)) << result.err;
      }
    }
  }
  EXPECT_GT(flags, 90u);
}

TEST(ExtremeValues, LengthsAreCounted) {
  const TempDirectory folder;
  const Arguments run = {"--model=lenet", "--device=cpu", "--batch_size=2"};
  for (const auto& [flag, part] :
       {std::tuple{"--num_epochs=1e19", "epochs of 1281167 images are 1.28117e+25 images, expected 1 to 1e+18"},
        std::tuple{"--num_epochs=1e10", "batches of 2, expected at most 2000000000"},
        std::tuple{"--num_epochs=1e-9", "1e-09 epochs of 1281167 images are 0.00128117 images, expected 1"},
        std::tuple{"--gradient_accumulation=10000000000",
                   "--gradient_accumulation: expected an integer of at most 65536"},
        std::tuple{"--image_size=100000", "--image_size: expected an integer of at most 4096, found 100000"},
        std::tuple{"--eval_during_training_at_specified_epochs=inf", "inf epochs"},
        std::tuple{"--eval_during_training_at_specified_epochs=1e300", "1e+300 epochs"}})
    expect_error_line(train(run + Arguments{flag}), 1, part);
  expect_error_line(
      train(run + Arguments{"--eval", "--train_dir=" + (folder / "none").string(), "--num_eval_epochs=1e19"}), 1,
      "epochs of 50000 images");
  expect_error_line(train(run + Arguments{"--batch_size=1048576", "--gradient_accumulation=4096"}), 1,
                    "global batch of 4294967296 images, expected at most 2147483647");
}

TEST(ExtremeValues, PausesForEvaluationTakeNoMemory) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: address space that AddressSanitizer leaves";
  // Two billion pauses: their steps would exceed the limit a hundredfold.
  const Arguments run = {"--model=lenet",
                         "--device=cpu",
                         "--batch_size=1",
                         "--num_intra_threads=2",
                         "--num_batches=2000000000",
                         "--eval_during_training_every_n_steps=1",
                         "--num_eval_batches=1",
                         "--stop_at_top_1_accuracy=0"};
  const ProgramResult result = run_after("ulimit -v 2000000", kProgram, run);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "Stopping, as eval accuracy at least 0 was reached")) << result.out;
}

TEST(ThreadBounds, AreRefusedAboveABound) {
  const Arguments classify = {"--model=lenet", "--weights=none", "none.jpg"};
  const Arguments serve = {"--model=lenet", "--weights=none", "--port=0"};
  for (const char* number : {"1025", "32000", "100000", "2147483648", "4294967296"}) {
    for (const std::string& flag : {concat("--num_intra_threads=", number), concat("--num_inter_threads=", number),
                                    concat("--datasets_num_private_threads=", number)})
      expect_error_line(train(lenet() + Arguments{flag}), 1,
                        concat("expected an integer of at most 1024, found ", number));
    expect_error_line(run_program("dtrain-classify", classify + Arguments{concat("--threads=", number)}), 1,
                      concat("at most 1024, found ", number));
    expect_error_line(run_program("dtrain-serve", serve + Arguments{concat("--num_intra_threads=", number)}), 1,
                      concat("at most 1024, found ", number));
    if (sanitized() && std::string_view(number).size() > 9)
      continue;  // LLVM's OpenMP runtime reads more than INT_MAX as 1, with a message
    const std::string variable = concat("export OMP_NUM_THREADS=", number);
    expect_error_line(run_after(variable, kProgram, lenet()), 1, "OMP_NUM_THREADS asks for ");
    expect_error_line(run_after(variable, "dtrain-serve", serve), 1, "OMP_NUM_THREADS asks for ");
    expect_error_line(run_after(variable, "dtrain-info", {}), 1, "OMP_NUM_THREADS asks for ");
  }
}

TEST(ThreadBounds, SystemLimitsAreDetectedBeforeOpenMp) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: address space that AddressSanitizer leaves";
  expect_error_line(run_after("ulimit -v 2000000", kProgram, lenet() + Arguments{"--num_intra_threads=1024"}), 6,
                    " of 1023 (Resource temporarily unavailable): use fewer threads");
}

// A pipe without a reader, inherited by a child.
class ClosedPipe {
 public:
  ClosedPipe() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    close(ends[0]);
    end_ = ends[1];
  }
  ~ClosedPipe() { close(end_); }
  ClosedPipe(const ClosedPipe&) = delete;
  ClosedPipe& operator=(const ClosedPipe&) = delete;
  std::string number() const { return std::to_string(end_); }

 private:
  int end_ = -1;
};

// A command line and its documented exit code.
struct Promise {
  std::string program;
  Arguments arguments;
  int code;
};

TEST(Outputs, ClosedStderrKeepsTheExitCode) {
  const TempDirectory folder;
  const ClosedPipe pipe;
  const std::string weights = (folder / "weights").string(), none = (folder / "none").string();
  const std::string train_dir = "--train_dir=" + (folder / "run").string();
  write_file(weights, "none");
  for (const auto& [program, arguments, code] :
       {Promise{kProgram, {"--modle=lenet"}, 1}, Promise{kProgram, {"--data_dir=" + none}, 2},
        Promise{kProgram, lenet() + Arguments{"--init_learning_rate=1e30", "--num_batches=9"}, 3},
        Promise{kProgram, {"--weights=" + none}, 5}, Promise{kProgram, lenet(), 0},
        Promise{"dtrain-data", {"inspect", none}, 2}, Promise{"dtrain-data", {"inspect", weights, weights}, 2},
        Promise{
            "dtrain-data", {"synthesize", "--output=" + (folder / "set").string(), "--train=4", "--validation=4"}, 0},
        Promise{"dtrain-classify", {"--model=lenet", "--weights=" + weights, weights}, 5},
        Promise{"dtrain-serve", {"--model=lenet", "--weights=" + weights, "--port=0"}, 5},
        Promise{"dtrain-serve", {"--model=lenet"}, 1},
        Promise{"dtrain-serve", {train_dir, "--images=" + none, "--port=0"}, 2},
        Promise{"dtrain-serve", {train_dir, "--port=0", "--address=192.0.2.1"}, 6},
        Promise{"dtrain-scale", {"--steps=0"}, 1}, Promise{"dtrain-info", {"--ranks=maybe"}, 1},
        Promise{"dtrain-scale", {"--images_per_sec=9", "--batch_size=1", "--threads=1"}, 0},
        Promise{"dtrain-allreduce-benchmark", {"--factor=1"}, 1}})
    for (const std::string& line :
         {std::string("exec 2>/dev/full"), std::string("exec 2>&-"), "exec 2>&" + pipe.number()})
      EXPECT_EQ(run_after(line, program, arguments).code, code) << program << " " << arguments[0] << ": " << line;
}

TEST(Outputs, ClosedStdoutOfResultsExitsWithSix) {
  const TempDirectory folder;
  const ClosedPipe pipe;
  const std::string set = (folder / "set").string();
  ASSERT_EQ(run_program("dtrain-data", {"synthesize", "--output=" + set, "--train=4", "--validation=4"}).code, 0);
  for (const auto& [program, arguments, code] :
       {Promise{"dtrain-data", {"inspect", set}, 6}, Promise{"dtrain-data", {"--help"}, 6},
        Promise{"dtrain-serve", {"--help"}, 6}, Promise{"dtrain-scale", {"--images_per_sec=9", "--batch_size=1"}, 6},
        Promise{"dtrain-info", {}, 6}, Promise{"dtrain-allreduce-benchmark", {"--max_bytes=8K", "--iterations=2"}, 6},
        Promise{kProgram, {"--help"}, 6}})
    for (const std::string& line : {std::string("exec >/dev/full"), "exec >&" + pipe.number()}) {
      SCOPED_TRACE(program + " " + (arguments.empty() ? "" : arguments[0]) + ": " + line);
      expect_error_line(run_after(line, program, arguments), code, "standard output: ");
    }
}

TEST(Outputs, ClosedLogOnlyPrintsANotice) {
  const ClosedPipe pipe;
  const ProgramResult result = run_after("exec >&" + pipe.number(), kProgram, lenet());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(count_of(result.err, "note: the log: Broken pipe; the run goes on"), 1u) << result.err;
}

// Lines that begin with `part`.
size_t lines_with(const ProgramResult& result, const std::string& part) {
  return count_of("\n" + result.out + "\n" + result.err, "\n" + part);
}

TEST(Names, ForgeNoLine) {
  const TempDirectory folder;
  const std::string forged = "x\nerror: forged\x1b[2J", shown = "x\\nerror: forged\\x1b[2J";
  const std::string header = R"({"x\nerror: forged\u001b[2J":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string weights = (folder / "weights").string(), file = (folder / forged).string();
  const std::string train_dir = "--train_dir=" + (folder / "run").string(), none = (folder / "none").string();
  const uint64_t length = header.size();
  write_file(weights, std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(4, '\0'));
  write_file(file, "no records");
  const Arguments classify = {"--model=lenet", "--num_classes=7", "--weights=" + weights, "a.jpg"};
  for (const auto& [program, arguments, code] :
       {Promise{kProgram, {"--data_dir=" + none + forged}, 2}, Promise{kProgram, {"--model=" + forged}, 1},
        Promise{kProgram, {"--" + forged}, 1}, Promise{kProgram, {"--num_batches=" + forged}, 1},
        Promise{kProgram, lenet() + Arguments{"--weights=" + weights}, 5}, Promise{"dtrain-classify", classify, 5},
        Promise{"dtrain-serve", {"--model=lenet", "--num_classes=7", "--weights=" + weights, "--port=0"}, 5},
        Promise{"dtrain-serve", {train_dir, "--port=0", "--images=" + file}, 2},
        Promise{"dtrain-serve", {train_dir, "--port=0", "--name=" + forged}, 1},
        Promise{"dtrain-data", {"inspect", file}, 2}, Promise{"dtrain-data", {"inspect", file, file}, 2},
        Promise{"dtrain-data", {"verify", file}, 2}, Promise{"dtrain-data", {"index", file}, 2},
        Promise{"dtrain-scale", {"--images_per_sec=9", "--batch_size=1", "--device_name=" + forged}, 0},
        Promise{"dtrain-scale", {"--layers=" + forged}, 1}}) {
    const ProgramResult result = run_program(program, arguments);
    SCOPED_TRACE(program + " " + arguments[0] + "\n" + result.out + result.err);
    EXPECT_EQ(result.code, code);
    EXPECT_EQ(lines_with(result, "error: forged"), 0u);
    EXPECT_FALSE(contains(result.out + result.err, "\x1b"));
    EXPECT_TRUE(contains(result.out + result.err, shown));
  }
  const ProgramResult readable = run_program(kProgram, {"--data_dir=" + none + "/Größe 尺寸"});
  EXPECT_TRUE(contains(readable.err, "error: " + none + "/Größe 尺寸: ")) << readable.err;
}

class Scarcity : public CnnBenchmarks {};

TEST_F(Scarcity, FileSizeLimitIsAnErrorNotASignal) {
  expect_error_line(run_after("ulimit -f 8", "dtrain-data", {"synthesize", "--output=" + path("set"), "--shards=1"}), 6,
                    "File too large");
  const ProgramResult run = run_after("ulimit -f 64", kProgram, real("run"));
  expect_error_line(run, 6, "checkpoints in a row failed, the last one with: write ");
}

TEST_F(Scarcity, FullDiskDuringTrainingExitsWithSix) {
  std::filesystem::create_directory(path("small"));
  if (mount("tmpfs", path("small").c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "SKIPPED: the right to mount a tmpfs";
  const ProgramResult run = train(
      real("small/run") + Arguments{"--num_batches=40", "--max_ckpts_to_keep=100", "--metrics_file=" + path("m")});
  const bool saved = std::filesystem::exists(checkpoint("small/run", 4));
  umount(path("small").c_str());
  EXPECT_TRUE(saved) << run.err;
  expect_error_line(run, 6, "checkpoints in a row failed, the last one with: ");
}

TEST_F(Scarcity, DescriptorExhaustionIsNotADataFault) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: descriptors that UndefinedBehaviorSanitizer leaves";
  // From too few for opening anything to enough.
  bool enough = false;
  for (int descriptors = 4; descriptors <= 24 && !enough; ++descriptors) {
    const std::string limit = concat("ulimit -n ", descriptors);
    SCOPED_TRACE(limit);
    const ProgramResult trained =
        run_after(limit, kProgram, real(concat("run", descriptors)) + Arguments{"--num_batches=4"});
    if (trained.code == kNotLoaded) continue;
    if (trained.code != 0) expect_error_line(trained, 6, "Too many open files");
    for (const char* command : {"inspect", "verify", "index"}) {
      const ProgramResult read = run_after(limit, "dtrain-data", {command, data(), "--threads=1"});
      EXPECT_TRUE(read.code == 0 || read.code == 6) << command << read.code << read.out << read.err;
    }
    enough = trained.code == 0;
  }
  EXPECT_TRUE(enough);
}

TEST_F(Scarcity, DescriptorExhaustionSkipsNoCheckpoint) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: descriptors that UndefinedBehaviorSanitizer leaves";
  ASSERT_EQ(train(real("run")).code, 0);
  for (int descriptors = 5; descriptors <= 16; ++descriptors) {
    const ProgramResult run = run_after(concat("ulimit -n ", descriptors), kProgram, real("run"));
    EXPECT_FALSE(contains(run.err, "skipped a damaged")) << run.err;
    if (run.code != 0 && run.code != kNotLoaded) expect_error_line(run, 6, "Too many open files");
  }
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 24)));
}

TEST(AddressSpace, TooLittleExitsWithSix) {
  if (sanitized()) GTEST_SKIP() << "SKIPPED: address space that AddressSanitizer leaves";
  const Arguments resnet = {"--model=resnet20", "--data_name=cifar10", "--device=cpu",
                            "--batch_size=8",   "--num_batches=1",     "--num_warmup_batches=0"};
  for (const Arguments& run : {lenet(), resnet}) {
    int refused = 0;
    bool enough = false;
    for (int kilobytes = 60000; kilobytes <= 1000000 && !enough; kilobytes += 8000) {
      const std::string limit = concat("ulimit -v ", kilobytes, "; export OMP_NUM_THREADS=2");
      SCOPED_TRACE(limit);
      const ProgramResult result = run_after(limit, kProgram, run);
      if (result.code == kNotLoaded) continue;
      enough = result.code == 0;
      refused += !enough;
      if (!enough) expect_error_line(result, 6, "");
    }
    EXPECT_GT(refused, 1);
    EXPECT_TRUE(enough);
  }
}

}  // namespace
}  // namespace dtrain
