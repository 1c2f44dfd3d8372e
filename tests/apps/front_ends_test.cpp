// Front ends for other programs' command lines: logs and results.
#include <csignal>
#include <cstdlib>
#include <regex>

#include "apps/cli/values.h"
#include "apps/cnn_benchmarks/settings.h"
#include "apps/cnn_benchmarks/training_schedule.h"
#include "apps/train_imagenet/translation.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

const Arguments kSmall = {"--", "--model=resnet20", "--image_size=16"};
constexpr char kAws[] = "dtrain-train-imagenet", kIntel[] = "dtrain-imagenet-main",
               kLauncher[] = "dtrain-launch-benchmark";

std::vector<std::string> lines_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void expect_lines(const std::string& text, const std::vector<std::string>& patterns) {
  const std::vector<std::string> lines = lines_in(text);
  ASSERT_EQ(lines.size(), patterns.size()) << text;
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_TRUE(std::regex_match(lines[i], std::regex(patterns[i]))) << lines[i] << "\nexpected " << patterns[i];
}

class FrontEnds : public CnnBenchmarks {
 protected:
  Arguments aws(const Arguments& more) const {
    return Arguments{"-m", "resnet18", "--data_dir", data(), "-b", "4", "--log_dir", path("log")} + more + kSmall;
  }
};

TEST_F(FrontEnds, AwsTrainsResumesAndEvaluates) {
  const ProgramResult run =
      run_program(kAws, aws({"--num_batches=6", "--display_every", "2", "--save_checkpoints_steps=2"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string numbers = R"( +\d+\.\d +\d+\.\d +\d+\.\d{3} +\d+\.\d{3} 0\.\d{5})";
  const std::vector<std::string> patterns = {"Horovod size: 1",        "  Step Epoch Speed   Loss  FinLoss   LR",
                                             "     1" + numbers,       "     2" + numbers,
                                             "     4" + numbers,       "     6" + numbers,
                                             R"(Finished in \d+\.\d+)"};
  expect_lines(run.out, patterns);
  EXPECT_EQ(read_file(path("log/hvd_train.log")), run.out);
  EXPECT_TRUE(contains(run.out, "     4   0.4 ")) << "epochs of 40 images: " << run.out;
  EXPECT_TRUE(contains(run.err, "fp16, the default, needs a GPU")) << run.err;

  const ProgramResult table = run_program(kAws, aws({"--num_batches=6", "--eval", "--eval_interval=2"}));
  ASSERT_EQ(table.code, 0) << table.err;
  const std::string row = R"( +\d+\.\d  +\d+\.\d{3}  +\d+\.\d\d  +\d+\.\d\d  UTC:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)";
  expect_lines(table.out,
               {"Evaluating", " step  epoch  top1    top5     loss   checkpoint_time", "    2" + row, "    6" + row});
  EXPECT_EQ(read_file(path("log/eval_hvd_train.log")), table.out);

  const ProgramResult more = run_program(kAws, aws({"--num_epochs=1", "--num_batches=7", "--display_every=3"}));
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_TRUE(contains(more.out, "Restored step 6 from ")) << more.out;
  EXPECT_TRUE(contains(more.out, "\n     9   0.9 ") && !contains(more.out, "    10 ")) << "epochs win: " << more.out;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("log", 10)));

  const ProgramResult anew = run_program(kAws, aws({"--num_batches=1", "--clear_log"}));
  EXPECT_EQ(anew.code, 0) << anew.err;
  EXPECT_FALSE(contains(anew.out, "Restored")) << anew.out;
  EXPECT_EQ(read_file(path("log/hvd_train.log")), anew.out);
}

TEST_F(FrontEnds, AwsRefusesInOneLine) {
  struct Case {
    Arguments arguments;
    const char* message;
  };
  for (const Case& c :
       {Case{{"--synthetic"}, "expected --num_epochs or --num_batches"},
        {{"--synthetic", "--num_batch=1"}, "unknown flag --num_batch, did you mean --num_batches?"},
        {{"--num_batches=1"}, "--data_dir is required without --synthetic"},
        {{"--num_batches=1", "--synthetic", "--eval"}, "--eval needs data"},
        {{"--num_batches=1", "--synthetic", "--fp16"}, "--fp16: not supported on a CPU; use --nofp16"},
        {{"--num_batches=1", "--synthetic", "--noadv_conv_init"}, "--adv_conv_init=false is not supported"},
        {{"--num_batches=1", "--synthetic", "-m", "vgg16"}, "--model: expected one of resnet18|"},
        {{"--num_batches=1", "--synthetic", "more"}, "unexpected argument 'more'"}}) {
    const ProgramResult run = run_program(kAws, c.arguments);
    EXPECT_EQ(run.code, 1) << c.message;
    EXPECT_TRUE(contains(run.err, c.message)) << run.err;
    EXPECT_TRUE(run.out.empty()) << run.out;
  }
}

TEST_F(FrontEnds, MessagesAreAboutTheArgumentsOfTheUser) {
  const Arguments line = {"-m", "resnet18", "--data_dir", data(), "-b", "4", "--num_batches=1", "--mom", "0.8"};
  const ProgramResult run = run_program(kAws, line + Arguments{"--log_dir", path("messages")} + kSmall);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "--momentum=0.8 (given)")) << run.err;
  EXPECT_TRUE(contains(run.err, " --weight_decay=0.0001 --") || contains(run.err, " --weight_decay=0.0001\n"))
      << "implied by a default of the script: " << run.err;
  EXPECT_FALSE(contains(run.err, "--num_classes=1000 (given)")) << run.err;

  const ProgramResult wrong = run_program(kAws, line + Arguments{"--leta=-1", "--use_larc"} + kSmall);
  EXPECT_EQ(wrong.code, 1) << wrong.err;
  EXPECT_TRUE(contains(wrong.err, "--leta: ")) << wrong.err;
  const ProgramResult ours = run_program(kAws, line + kSmall + Arguments{"--larc_trust=-1"});
  EXPECT_EQ(ours.code, 1) << ours.err;
  EXPECT_TRUE(contains(ours.err, "--larc_trust: ")) << "a flag behind --: " << ours.err;
}

TEST(FlagNames, ReplacesWholeNamesOnly) {
  cli::FlagNames names;
  names.theirs = {{"num_epochs", "epochs"}, {"lr", "rate"}};
  EXPECT_EQ(names.in("--num_epochs=3 and --num_epochs_per_decay, --lr; --lr_alpha -- --nolr --lr"),
            "--epochs=3 and --num_epochs_per_decay, --rate; --lr_alpha -- --nolr --rate");
  EXPECT_EQ(names.in(""), "");
  EXPECT_EQ(names.in("a--"), "a--");
}

// Resolves a command line of dtrain-cnn-benchmarks.
struct Ours {
  explicit Ours(std::vector<std::string> line) {
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    values.declare(flags);
    line.insert(line.begin(), "program");
    flags.parse(line);
    values.recipe.apply(flags);
    values.settle(flags);
  }
  std::string schedule() const {
    const cnn_benchmarks::Settings settings = make_settings(values, flags);
    return make_schedule(settings, {1'281'167, 50'000}).learning_rate.describe();
  }
  std::string update() const {
    const UpdateOptions u = values.optimizer.options().update;
    return concat(static_cast<int>(u.rule), " ", u.momentum, " ", static_cast<int>(u.larc), " ", u.trust, " ",
                  u.joint_norm);
  }

  cnn_benchmarks::Flags values;
  cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
};

void expect_same_run(const std::string& script, const std::string& recipe) {
  SCOPED_TRACE(script);
  cli::FlagSet flags("dtrain-train-imagenet", "", "");
  train_imagenet::declare(flags);
  flags.parse(cli::split_words("program --data_dir=D --nofp16 " + script));
  const Ours translated(train_imagenet::translated(flags, /*gpu=*/false)),
      expected(cli::split_words("--data_dir=D --num_warmup_batches=0 " + recipe));
  EXPECT_EQ(translated.flags.recorded_identity(), expected.flags.recorded_identity());
  EXPECT_EQ(translated.values.optimizer.weight_decay, expected.values.optimizer.weight_decay);
  EXPECT_EQ(translated.update(), expected.update());
  EXPECT_EQ(translated.schedule(), expected.schedule());
  EXPECT_EQ(translated.values.pixels.distortions, expected.values.pixels.distortions);
  EXPECT_EQ(translated.values.machine.fp16_loss_scale, expected.values.machine.fp16_loss_scale);
}

TEST(AwsTranslation, MatchesTheRecipes) {
  expect_same_run("--num_epochs 90 -b 256 --lr_decay_mode poly --warmup_epochs 10 --clear_log",
                  "--recipe=aws --num_epochs=90 --batch_size=256");
  expect_same_run(
      "--num_epochs 90 --increased_aug -b 256 --mom 0.977 --wdecay 0.0005 --loss_scale 256. --use_larc "
      "--lr_decay_mode linear_cosine --warmup_epochs 5",
      "--recipe=aws-large --num_epochs=90 --batch_size=256");
  expect_same_run("--num_epochs 9 -b 128 --lr 0.3 --lr_decay_mode cosine",
                  "--recipe=aws --num_epochs=9 --batch_size=128 --init_learning_rate=0.3 --lr_schedule=cosine "
                  "--end_learning_rate=0 --num_learning_rate_warmup_epochs=0 --warmup_learning_rate=0");
  expect_same_run("--num_epochs 9 -b 128 --lr_decay_mode steps --lr_decay_steps 3,6 --lr_decay_lrs 0.3,0.2,0.1",
                  "--recipe=aws --num_epochs=9 --batch_size=128 --lr_decay_epochs=3,6 --lr_decay_lrs=0.3,0.2,0.1");
}

TEST_F(FrontEnds, IntelsTrainerPrintsTagsAndTensorFlowsLines) {
  const ProgramResult run =
      run_program(kIntel, Arguments{"2", "--batch_size", "4", "--max_train_steps", "12", "--train_epochs", "3",
                                    "--epochs_between_evals", "1", "--inter_op_parallelism_threads", "2",
                                    "--intra_op_parallelism_threads", "1", "--version", "1", "--resnet_size", "50",
                                    "--data_dir=" + data(), "--model_dir=" + path("model")} +
                              kSmall);
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string tag = R"(:::MLPv0\.5\.0 resnet \d+\.\d{9} \(apps/observers/imagenet_main_log\.cpp:\d+\) )",
                    number = R"(\d+(\.\d+)?)";
  const auto evaluation = [&](const std::string& step, const std::string& epoch) {
    return std::vector<std::string>{R"(Starting to evaluate\.)", tag + "eval_start",
                                    R"(\{'accuracy': )" + number + ", 'accuracy_top_5': " + number +
                                        ", 'loss': " + number + ", 'global_step': " + step + R"(\})",
                                    tag + R"(eval_accuracy: \{"epoch": )" + epoch + R"(, "value": )" + number + R"(\})",
                                    tag + "eval_stop"};
  };
  expect_lines(run.out,
               Arguments{tag + "run_start", R"(Starting a training cycle\.)", tag + "train_epoch: 0",
                         R"(INFO:tensorflow:loss = \d\.\d{6}, step = 0)", "INFO:tensorflow:global_step/sec: " + number,
                         R"(INFO:tensorflow:loss = \d\.\d{6}, step = 10 \(\d+\.\d{3} sec\))"} +
                   evaluation("10", R"(1\.0)") + Arguments{R"(Starting a training cycle\.)", tag + "train_epoch: 1"} +
                   evaluation("12", R"(1\.2)") +
                   Arguments{tag + R"(run_stop: \{"success": false\})", tag + "run_final"});
  EXPECT_TRUE(std::filesystem::exists(checkpoint("model/main", 12)));
  EXPECT_TRUE(contains(run.err, "--inter_op_parallelism_threads=2 has no effect")) << run.err;
}

TEST_F(FrontEnds, IntelsTrainerStopsAtItsThreshold) {
  const ProgramResult run =
      run_program(kIntel, Arguments{"2", "-synth", "-bs", "2", "-mts", "3", "-te", "1", "-st", "0"} + kSmall +
                              Arguments{"--display_every=1"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, R"(run_stop: {"success": true})")) << run.out;
  EXPECT_TRUE(contains(run_program(kIntel, {"-synth"}).err, "expected the seed")) << "as the first argument";
}

Arguments intel(const Arguments& more) {
  return Arguments{"--framework", "tensorflow", "--model-name", "resnet50v1_5", "-p", "fp32", "-mo", "training"} + more;
}

TEST_F(FrontEnds, TheLauncherHasADryRun) {
  const auto dry = [](const Arguments& more) {
    const ProgramResult run = run_program(kLauncher, intel(more) + Arguments{"--dry-run"});
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  };
  EXPECT_TRUE(contains(dry({"-p", "bfloat16"}), " --use_bfloat16 "));
  EXPECT_TRUE(contains(dry({"-p", "bfloat16", "-mo", "inference"}), " --precision=bf16 "));
  const std::string one = dry({"-b", "16", "-d", "/data/imagenet", "-a", "22", "-e", "2", "-c", "/out"});
  EXPECT_TRUE(
      one.ends_with("dtrain-imagenet-main 2 --max_train_steps=112590 --train_epochs=72 --epochs_between_evals=1 "
                    "--version=1 --resnet_size=50 --num_gpus=0 --data_dir=/data/imagenet "
                    "--intra_op_parallelism_threads=22 --inter_op_parallelism_threads=2 --batch_size=16 "
                    "--model_dir=/out\n"))
      << one;
  const std::string ranks = dry({"--mpi_num_processes=2", "--mpi_num_processes_per_socket=1"});
  EXPECT_TRUE(ranks.starts_with("mpirun --allow-run-as-root -n 2 --map-by socket /")) << ranks;
  EXPECT_TRUE(contains(ranks, " --use_synthetic_data --batch_size=64\n")) << ranks;
  EXPECT_TRUE(
      contains(dry({"--mpi_num_processes=4", "--mpi_num_processes_per_socket=2"}), "--map-by ppr:2:socket:pe="));
  const std::string hosts = dry({"--mpi_num_processes=4", "--mpi_hostnames=a,b"});
  EXPECT_TRUE(contains(hosts,
                       " -H a:2,b:2 -mca pml ob1 -mca btl ^openib -mca btl_tcp_if_exclude lo,docker0 "
                       "--bind-to none --map-by slot /"))
      << hosts;
}

TEST_F(FrontEnds, TheLauncherRunsInstancesAndSumsTheirSpeeds) {
  const Arguments run_there = {"--numa-cores-per-instance=1",
                               "--num-cores=2",
                               "--output-dir",
                               path("logs"),
                               "-b",
                               "2",
                               "-a",
                               "1",
                               "--",
                               "steps=10",
                               "train_epochs=1",
                               "kmp-blocktime=1",
                               "--model=resnet20",
                               "--image_size=16"};
  const ProgramResult run = run_program(kLauncher, intel(run_there));
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string stem = path("logs") + "/resnet50v1_5_fp32_training_bs2_cores1_";
  const std::string first = read_file(stem + "instance0.log"), all = read_file(stem + "all_instances.log");
  EXPECT_TRUE(contains(first, "INFO:tensorflow:loss = ")) << first;
  const std::regex speed(R"(global_step/sec: (\S+))");
  double sum = 0;
  for (std::sregex_iterator at(all.begin(), all.end(), speed), end; at != end; ++at) sum += 2 * std::stod((*at)[1]);
  const size_t summary = run.out.find("Throughput summary:\n");
  ASSERT_NE(summary, std::string::npos) << run.out;
  EXPECT_NEAR(std::stod(run.out.substr(summary + 20)), sum, 1e-4 * sum);
  EXPECT_TRUE(contains(run.out, "NOTE: kmp-blocktime has no effect")) << run.out;
}

TEST_F(FrontEnds, TheLauncherForwardsStopRequests) {
  Program launcher(kLauncher, intel({"-b", "2", "-c", path("stopped"), "--", "steps=1000000", "train_epochs=90",
                                     "--model=resnet20", "--image_size=16"}));
  ASSERT_TRUE(launcher.wait_for("step = 0"));
  launcher.signal(SIGTERM);
  const ProgramResult run = launcher.finish();
  EXPECT_EQ(run.code, 75) << run.err;
  EXPECT_TRUE(contains(run.out, "run_stop: {\"success\": false}")) << run.out;
  EXPECT_TRUE(std::filesystem::exists(path("stopped/main/checkpoints")));
}

TEST_F(FrontEnds, TheLauncherPassesFailuresOnAndRefusesInOneLine) {
  const ProgramResult failed = run_program(kLauncher, intel({"-d", path("none"), "--output-dir", path("logs")}));
  EXPECT_EQ(failed.code, 2) << failed.out;
  EXPECT_TRUE(contains(failed.err, "error: ")) << failed.err;
  struct Case {
    Arguments arguments;
    const char* message;
  };
  for (const Case& c :
       {Case{{"-p", "int8"}, "--precision=int8 is not supported here; use dtrain-classify calibrate"},
        {{"-m", "bert"}, "--model-name: expected resnet50v1_5"},
        {{"--mpi_num_processes=2", "--numa-cores-per-instance=1"}, "--mpi_num_processes and --numa-cores-per-instance"},
        {{"--mpi_num_processes=3", "--mpi_hostnames=a,b"}, "3 processes cannot be shared equally by 2 hosts"},
        {{"--numa-cores-per-instance=100000"}, "no socket has 100000 cores"},
        {{"--", "stepps=3"}, "'stepps=3': expected steps="},
        {{"-g", "x.pb"}, "--in-graph=x.pb is not supported"}}) {
    const ProgramResult run = run_program(kLauncher, intel(c.arguments));
    EXPECT_EQ(run.code, 1) << c.message;
    EXPECT_TRUE(contains(run.err, c.message)) << run.err;
  }
}

}  // namespace
}  // namespace dtrain
