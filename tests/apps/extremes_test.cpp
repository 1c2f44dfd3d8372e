// What extreme values of flags, and limits of the system, come to: one clear line and the documented code.
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

// Runs a program after a line of shell, such as one that sets limits.
ProgramResult run_after(const std::string& line, const std::string& program, const Arguments& arguments) {
  const std::string path = std::filesystem::absolute(bin_dir() / program).string();
  return run_program("/bin/sh", Arguments{"-c", line + "; exec \"$0\" \"$@\"", path} + arguments);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// One line of an error, and nothing of the system's.
void expect_error_line(const ProgramResult& result, int code, const std::string& part) {
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_EQ(count_of(result.err, "error: "), 1u) << result.err;
  EXPECT_TRUE(contains(result.err, part)) << "no \"" << part << "\" in\n" << result.err;
  EXPECT_FALSE(contains(result.err, "internal error")) << result.err;
}

Arguments lenet() {
  return {"--model=lenet", "--device=cpu", "--batch_size=2", "--num_batches=2", "--num_warmup_batches=0"};
}

// The number, after its flag, that no range allows.
TEST(ExtremeValues, EveryNumberHasARange) {
  const std::set<std::string> unlimited = {"tf_random_seed"}, above = {"seed"};
  const std::vector<Arguments> programs = {{"dtrain-cnn-benchmarks"},
                                           {"dtrain-classify"},
                                           {"dtrain-scale"},
                                           {"dtrain-info"},
                                           {"dtrain-allreduce-benchmark"},
                                           {"dtrain-data", "imagenet"},
                                           {"dtrain-data", "synthesize"},
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
  expect_error_line(train(run + Arguments{"--eval", "--train_dir=/nonexistent", "--num_eval_epochs=1e19"}), 1,
                    "epochs of 50000 images");
  expect_error_line(train(run + Arguments{"--batch_size=1048576", "--gradient_accumulation=4096"}), 1,
                    "come to 4294967296 images, expected at most 2147483647");
}

TEST(ExtremeValues, PausesForEvaluationTakeNoMemory) {
  // Two billion pauses: their steps would take a hundred times what is allowed.
  const Arguments run = {"--model=lenet",
                         "--device=cpu",
                         "--batch_size=1",
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
  for (const char* number : {"1025", "32000", "100000", "2147483648", "4294967296"}) {
    for (const std::string& flag : {concat("--num_intra_threads=", number), concat("--num_inter_threads=", number),
                                    concat("--datasets_num_private_threads=", number)})
      expect_error_line(train(lenet() + Arguments{flag}), 1,
                        concat("expected an integer of at most 1024, found ", number));
    expect_error_line(run_program("dtrain-classify", classify + Arguments{concat("--threads=", number)}), 1,
                      concat("at most 1024, found ", number));
    const std::string variable = concat("export OMP_NUM_THREADS=", number);
    expect_error_line(run_after(variable, kProgram, lenet()), 1, "OMP_NUM_THREADS asks for ");
    expect_error_line(run_after(variable, "dtrain-info", {}), 1, "OMP_NUM_THREADS asks for ");
  }
}

TEST(ThreadBounds, ThatTheSystemRefusesAreMissedBeforeOpenMpMissesThem) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "SKIPPED: address space that AddressSanitizer leaves";
#endif
  expect_error_line(run_after("ulimit -v 2000000", kProgram, lenet() + Arguments{"--num_intra_threads=1024"}), 6,
                    " of 1023 (Resource temporarily unavailable): use fewer threads");
}

}  // namespace
}  // namespace dtrain
