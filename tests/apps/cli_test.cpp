// Flag syntax, help text, and parsing of command lines.
#include <cstdlib>
#include <sstream>

#include "apps/cli/command_line.h"
#include "apps/cli/flags.h"
#include "apps/cli/run_main.h"
#include "dtrain/core/error.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

struct Values {
  bool quick = false, checked = true;
  int64_t count = 7;
  std::optional<int64_t> limit;
  double rate = 0.5;
  std::optional<double> floor;
  std::string name = "x", mode = "fast";
  std::vector<std::string> points;
};

class CliFlags : public testing::Test {
 protected:
  CliFlags() {
    flags.group("Numbers");
    flags.add("count", values.count, "how many", kPositiveCount);
    flags.add("limit", values.limit, "at most", kAny<int64_t>);
    flags.add("rate", values.rate, "how fast", {0, 1});
    flags.add("floor", values.floor, "not below", kAny<double>);
    flags.group("Others");
    flags.add("quick", values.quick, "do not wait");
    flags.add("checked", values.checked, "check");
    flags.add("name", values.name, "a name");
    flags.add("points", values.points, "a list");
    flags.add_choice("mode", values.mode, {"fast", "slow"}, "how");
    flags.add_unread("xla", "bool", "false", "just-in-time compilation").no_effect("there is no graph");
    flags.add_unread("spec", "string", "", "all-reduce algorithms").refused("there is one");
    flags.add_unread("trt", "|FP32|FP16", "", "TensorRT's precision").refused("it is not used");
  }

  std::vector<std::string> parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "program");
    return flags.parse(arguments);
  }
  std::string failure(const std::vector<std::string>& arguments) {
    try {
      parse(arguments);
      flags.check_refused();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::config);
      return error.what();
    }
    return "no error";
  }

  Values values;
  FlagSet flags{"program", "[flags]", "For the test."};
};

TEST_F(CliFlags, AllFormsOfAbsl) {
  EXPECT_TRUE(parse({"--count=3", "--rate", "0.25", "-limit=-4", "--quick", "--nochecked", "--floor=1e-3",
                     "--name=", "--points=1,2,30", "--mode", "slow"})
                  .empty());
  EXPECT_EQ(values.count, 3);
  EXPECT_EQ(values.rate, 0.25);
  EXPECT_EQ(values.limit, -4);
  EXPECT_TRUE(values.quick);
  EXPECT_FALSE(values.checked);
  EXPECT_EQ(values.floor, 1e-3);
  EXPECT_EQ(values.name, "");
  EXPECT_EQ(values.points, (std::vector<std::string>{"1", "2", "30"}));
  EXPECT_EQ(values.mode, "slow");
  EXPECT_TRUE(flags.given("count"));
  EXPECT_FALSE(flags.given("xla"));
}

TEST_F(CliFlags, ShortNamesAreNamesToo) {
  std::string version;
  int64_t batch = 1;
  flags.add("batch-size", batch, "images", kPositiveCount).short_name("b").short_name("bs");
  flags.add("version", version, "of a model");
  EXPECT_TRUE(parse({"-b", "5", "--version", "1"}).empty());
  EXPECT_EQ(batch, 5);
  parse({"-bs=6"});
  EXPECT_EQ(batch, 6);
  EXPECT_TRUE(flags.given("batch-size"));
  EXPECT_EQ(version, "1") << "a flag of that name takes the place of the request";
  EXPECT_FALSE(flags.wants_version());
  EXPECT_TRUE(flags.notices().empty());
  EXPECT_TRUE(contains(flags.help(), "images; -b for short; -bs for short")) << flags.help();
  EXPECT_EQ(failure({"-b", "x"}), "--batch-size: expected an integer, found 'x'");
}

TEST_F(CliFlags, SwitchesTakeAValueOnlyAfterEquals) {
  for (const char* text : {"--quick=true", "--quick=True", "--quick=1", "--quick=t"}) {
    values.quick = false;
    parse({text});
    EXPECT_TRUE(values.quick) << text;
  }
  for (const char* text : {"--quick=false", "--quick=0", "--quick=F", "--noquick"}) {
    values.quick = true;
    parse({text});
    EXPECT_FALSE(values.quick) << text;
  }
  EXPECT_EQ(parse({"--quick", "false"}), std::vector<std::string>{"false"});
  EXPECT_EQ(failure({"--quick=maybe"}), "--quick: expected true or false, found 'maybe'");
}

TEST_F(CliFlags, LastOccurrenceWinsAndDashesEndTheFlags) {
  EXPECT_EQ(parse({"--count=1", "a", "--count=2", "--", "--count=3"}), (std::vector<std::string>{"a", "--count=3"}));
  EXPECT_EQ(values.count, 2);
}

TEST_F(CliFlags, ValuesAreTyped) {
  EXPECT_EQ(failure({"--count=many"}), "--count: expected an integer, found 'many'");
  EXPECT_EQ(failure({"--count=1.5"}), "--count: expected an integer, found '1.5'");
  EXPECT_EQ(failure({"--count=0"}), "--count: expected an integer of at least 1, found 0");
  EXPECT_EQ(failure({"--count=99999999999999999999"}), "--count: expected an integer, found '99999999999999999999'");
  EXPECT_EQ(failure({"--rate=nan"}), "--rate: expected a number, found 'nan'");
  EXPECT_EQ(failure({"--rate=1.1"}), "--rate: expected a number of at most 1, found 1.1");
  EXPECT_EQ(failure({"--count=2000000001"}), "--count: expected an integer of at most 2000000000, found 2000000001");
  EXPECT_EQ(failure({"--trt=INT8"}), "--trt: expected one of |FP32|FP16, found 'INT8'");
  EXPECT_EQ(failure({"--mode=medium"}), "--mode: expected one of fast|slow, found 'medium'");
  EXPECT_EQ(failure({"--count"}), "--count: expected a value of type int, found the end of the line");
}

TEST_F(CliFlags, UnknownFlagsNameTheNearest) {
  EXPECT_EQ(failure({"--cuont=3"}), "unknown flag --cuont, did you mean --count?; --help lists all flags");
  EXPECT_EQ(failure({"--nocheked"}), "unknown flag --nocheked, did you mean --nochecked?; --help lists all flags");
  EXPECT_EQ(failure({"--zzzzzzzz"}), "unknown flag --zzzzzzzz; --help lists all flags");
  EXPECT_EQ(failure({"--nocount"}).substr(0, 22), "unknown flag --nocount");
  EXPECT_EQ(failure({"--noquick=true"}), "--noquick takes no value: it stands for --quick=false");
  EXPECT_EQ(failure({"--noxla="}), "--noxla takes no value: it stands for --xla=false");
}

TEST_F(CliFlags, ChoicesIgnoreCase) {
  EXPECT_EQ(failure({"--mode=SLOW"}), "no error");
  EXPECT_EQ(values.mode, "slow");
  EXPECT_EQ(flags.text("mode"), "slow");
}

TEST_F(CliFlags, RefusedFlagsMayOnlyHaveTheirDefault) {
  EXPECT_EQ(failure({"--spec=", "--trt="}), "no error");
  EXPECT_EQ(failure({"--spec=nccl"}), "--spec=nccl is not supported: there is one; leave the flag out");
  EXPECT_EQ(failure({"--spec=", "--trt=fp16"}), "--trt=FP16 is not supported: it is not used; leave the flag out");
  flags.add_unread("steps", "int", "1", "steps").refused("none are made");
  EXPECT_EQ(failure({"--steps=-1"}), "--steps: expected an integer of at least 0, found -1");
  EXPECT_EQ(failure({"--trt=", "--steps=2"}),
            "--steps=2 is not supported: none are made; leave the flag out or set it to 1");
}

TEST_F(CliFlags, FlagsWithoutEffectPrintOneNotice) {
  EXPECT_EQ(failure({"--noxla", "--xla=0"}), "no error");
  EXPECT_EQ(flags.notices(), std::vector<std::string>());
  EXPECT_EQ(failure({"--xla=false", "--xla", "--xla=1"}), "no error");
  EXPECT_EQ(flags.notices(), std::vector<std::string>{"--xla=true has no effect: there is no graph"});
  EXPECT_EQ(failure({"--xla=x"}), "--xla: expected true or false, found 'x'");
}

TEST_F(CliFlags, PathsBeginWithTheHomeFolder) {
  const char* before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  setenv("HOME", "/home/ann", 1);
  parse({"--name=~/run", "--points=~,x,~/a.jpg,~no-such-user,a~/b"});
  EXPECT_EQ(values.name, "/home/ann/run");
  EXPECT_EQ(flags.text("name"), "/home/ann/run");
  EXPECT_EQ(values.points, (std::vector<std::string>{"/home/ann", "x", "/home/ann/a.jpg", "~no-such-user", "a~/b"}));
  parse({"--name=~root/run"});
  EXPECT_EQ(values.name, "/root/run");
  EXPECT_EQ(failure({"--name=~no-such-user/run"}),
            "--name: ~no-such-user/ is the home folder of a user, but there is no user no-such-user; give the whole "
            "path, or ./~no-such-user/run for a folder of that name");
  unsetenv("HOME");
  parse({"--name=~/run"});
  EXPECT_TRUE(values.name.starts_with("/") && values.name.ends_with("/run")) << values.name << ": the system knows it";
  if (before != nullptr) setenv("HOME", home.c_str(), 1);
}

TEST_F(CliFlags, UrlsAreNotPaths) {
  const auto refusal = [](const std::string& url) {
    return "expected a local path, found the URL " + url +
           ": mount the bucket or share and give its folder, or give a local path and copy from or to the URL";
  };
  for (const char* url :
       {"gs://bucket/run", "s3://b", "hdfs://h:9000/x", "https://host/x", "file:///x", "S3+x-y.z://b"})
    EXPECT_EQ(failure({std::string("--name=") + url}), std::string("--name: ") + refusal(url));
  EXPECT_EQ(failure({"--points=a,gs://b/c"}), "--points: " + refusal("gs://b/c"));
  for (const char* path : {"://x", "a/b://c", "1s3://b", "s3:/b", "s3_x://b"}) {
    EXPECT_EQ(failure({std::string("--name=") + path}), "no error");
    EXPECT_EQ(values.name, path);
  }
}

TEST_F(CliFlags, ImpliedFlagsYieldToGivenOnes) {
  parse({"--count=3"});
  flags.imply("count", "4", "another");
  flags.imply("rate", "0.25", "another");
  EXPECT_EQ(values.count, 3);
  EXPECT_EQ(values.rate, 0.25);
}

TEST_F(CliFlags, HelpShowsGroupTypeDefaultAndMeaning) {
  parse({"--help"});
  EXPECT_TRUE(flags.wants_help());
  const std::string help = flags.help();
  EXPECT_EQ(
      help.find("usage: program [flags]\n\nFor the test.\n\nNumbers\n  --count (int, default 7)\n      how many\n"), 0u)
      << help;
  EXPECT_NE(help.find("\nOthers\n  --quick (bool, default false)\n"), std::string::npos) << help;
  EXPECT_NE(help.find("--mode (fast|slow, default fast)"), std::string::npos);
  EXPECT_NE(help.find("  --xla (bool, default false)\n      just-in-time compilation; no effect: there is no graph\n"),
            std::string::npos);
  EXPECT_EQ(help.find("--spec"), std::string::npos) << "what is always refused is in the tables alone";
  EXPECT_NE(flags.markdown().find("| `spec` | string |  | all-reduce algorithms | not supported: there is one |"),
            std::string::npos);
}

TEST_F(CliFlags, HelpHasNoLongLines) {
  std::string about;
  for (int i = 0; i < 100; ++i) about += "word" + std::to_string(i) + (i == 50 ? "\n" : " ");
  std::istringstream help(FlagSet("program", "[flags]", about).help());
  size_t lines = 0, longest = 0;
  for (std::string line; std::getline(help, line); ++lines) longest = std::max(longest, line.size());
  EXPECT_LE(longest, 112u);
  EXPECT_EQ(lines, 2u + 4 + 4 + 3);  // usage, four lines for each paragraph, the end
}

TEST(Flags, TablesOfMarkdown) {
  std::string mode = "a";
  bool quick = false;
  FlagSet flags("program", "", "");
  flags.group("How");
  flags.add_choice("mode", mode, {"a", "b"}, "as --quick, or --mode=b.").former_name("way");
  flags.group("Else");
  flags.add("quick", quick, "do not wait").no_effect("see --more_* and x|y");
  EXPECT_EQ(flags.markdown(),
            "## How\n\n| flag | type | default | meaning | support |\n|---|---|---|---|---|\n"
            "| `mode` | a\\|b | `a` | as `--quick`, or `--mode=b`.; formerly `--way` | supported |\n\n"
            "## Else\n\n| flag | type | default | meaning | support |\n|---|---|---|---|---|\n"
            "| `quick` | bool | `false` | do not wait | no effect: see `--more_*` and x\\|y |\n");
}

TEST(Flags, FormerNamesWorkWithANotice) {
  double bucket_mb = 25;
  bool quick = false;
  FlagSet flags("program", "", "");
  const auto of_kilobytes = [](const std::string& text) { return std::to_string(std::stoi(text) / 1024); };
  flags.add("bucket_mb", bucket_mb, "size", {1, 1024}).former_name("bucket_mib").former_name("bucket_kb", of_kilobytes);
  flags.add("quick", quick, "do not wait").former_name("fast");
  EXPECT_TRUE(flags.parse({"program", "--bucket_mib", "3"}).empty());
  EXPECT_EQ(bucket_mb, 3);
  EXPECT_TRUE(flags.given("bucket_mb"));
  flags.parse({"program", "-bucket_kb=4096", "--fast"});
  EXPECT_EQ(bucket_mb, 4);
  EXPECT_TRUE(quick);
  flags.parse({"program", "--nofast", "--bucket_mb=5"});
  EXPECT_FALSE(quick);
  EXPECT_EQ(flags.notices(), (std::vector<std::string>{"--bucket_mib has been renamed: taken as --bucket_mb=3",
                                                       "--bucket_kb has been renamed: taken as --bucket_mb=4",
                                                       "--fast has been renamed: taken as --quick=true",
                                                       "--fast has been renamed: taken as --quick=false"}));
  EXPECT_EQ(flags.settings_that_must_agree(),
            (std::vector<std::pair<std::string, std::string>>{{"--bucket_mb", "5"}, {"--quick", "false"}}));
  try {
    flags.parse({"program", "--bucket_kb=512"});
    FAIL() << "half a kilobyte";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--bucket_kb=512: --bucket_mb: expected a number of at least 1, found 0");
  }
  EXPECT_NE(flags.help().find("size; formerly --bucket_mib; formerly --bucket_kb, whose values are converted\n"),
            std::string::npos)
      << flags.help();
  EXPECT_THROW(flags.add("fast", quick, "taken"), Error);
}

TEST(Flags, TheCommandLineOverridesVariables) {
  int64_t count = 7, other = 1;
  FlagSet flags("program", "", "");
  flags.add("count", count, "how many", kPositiveCount).set_by("COUNT", [](const std::string& text) {
    return text == "-" ? std::nullopt : std::optional(text);
  });
  flags.add("other", other, "how many others", kCount).set_by("OTHER", [](const std::string& text) { return text; });
  flags.parse({"program", "--other=5"});
  EXPECT_EQ(flags.take_variable("SIZE", "3"), std::nullopt);
  EXPECT_EQ(flags.take_variable("COUNT", "-"), "");
  EXPECT_EQ(count, 7);
  EXPECT_EQ(flags.take_variable("COUNT", "3"), "COUNT: taken as --count=3");
  EXPECT_EQ(count, 3);
  EXPECT_FALSE(flags.given("count"));
  EXPECT_EQ(flags.take_variable("OTHER", "3"), "OTHER: ignored, because --other=5 is given");
  EXPECT_EQ(other, 5);
  EXPECT_THROW(flags.take_variable("COUNT", "0"), Error);
  EXPECT_NE(flags.help().find("how many; COUNT sets it\n"), std::string::npos) << flags.help();
}

TEST(Flags, DeclareRankConsistencyAndIdentity) {
  std::string folder = "here";
  double rate = 0.5;
  int64_t size = 0;
  bool colour = false, inverted = false;
  FlagSet flags("program", "", "");
  flags.add("folder", folder, "of data").may_differ_per_rank().identity_once_resolved("data");
  flags.add("rate", rate, "how fast", kShare).setting("speed");
  flags.add("size", size, "pixels", kCount).identity("side");
  flags.add("colour", colour, "in colour").identity("look", [&] {
    return std::string(colour ? "colour" : "grey") + (inverted ? ", inverted" : "");
  });
  flags.add("inverted", inverted, "of it");
  flags.parse({"program", "--folder=there", "--rate=.250", "--inverted"});
  using Texts = std::map<std::string, std::string>;
  EXPECT_EQ(flags.recorded_identity(), (Texts{{"look", "grey, inverted"}, {"side", "0"}}));
  EXPECT_EQ(flags.recorded_settings(), (Texts{{"speed", "0.25"}}));
  EXPECT_EQ(flags.identity_keys(), (std::set<std::string>{"data", "look", "side"}));
  EXPECT_EQ(flags.settings_that_must_agree(),
            (std::vector<std::pair<std::string, std::string>>{
                {"--rate", "0.25"}, {"--size", "0"}, {"--colour", "false"}, {"--inverted", "true"}}));
}

TEST(CommandLine, HelpAndVersionEndTheProgram) {
  bool quick = false;
  const auto print = [&](const std::string& argument) {
    FlagSet flags("program command", "", "For the test.");
    flags.add("quick", quick, "as mpirun --bind-to none").former_name("fast");
    testing::internal::CaptureStdout();
    EXPECT_FALSE(read_flags(flags, {"program command", argument}));
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(print("--version"), "program " + version() + "\n");
  EXPECT_TRUE(print("--help").starts_with("usage: program command\n"));
  EXPECT_TRUE(
      print("--helpmarkdown")
          .ends_with("| `quick` | bool | `false` | as mpirun `--bind-to` none; formerly `--fast` | supported |\n"));
}

TEST(CommandLine, HelpHasFormsForOtherPrograms) {
  std::string mode = "fast";
  const auto print = [&](const std::string& argument) {
    FlagSet flags("program command", "FILE [flags]", "Reads it: all.\nExit codes: 0 done.");
    flags.add_command("tune", "finds the fastest mode");
    flags.group("Gone");
    flags.add_unread("spec", "string", "", "all-reduce algorithms").refused("there is one");
    flags.group("Ways");
    flags.add_choice("mode", mode, {"fast", "slow"}, "how it's read").set_by("MODE", [](const auto& text) {
      return text;
    });
    testing::internal::CaptureStdout();
    EXPECT_FALSE(read_flags(flags, {"program command", argument}));
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(print("--help=list"),
            "tune\tcommand\tfinds the fastest mode\n--mode\tfast|slow\thow it's read\n"
            "--help\tasks\tevery flag\n--version\tasks\tthe version\n");
  const std::string page = print("--help=man");
  for (const char* part :
       {"\nprogram\\-command \\- reads it\n", "\\fBprogram command\\fR FILE [flags]\n",
        ".SH \"DESCRIPTION\"\nReads it: all.\n", ".SS \"Ways\"\n.TP\n",
        "\\fB\\-\\-mode\\fR=\\fIfast|slow\\fR\nhow it\\(aqs read; MODE sets it (default fast)\n",
        ".SH \"EXIT STATUS\"\n0 done.\n", "\\fBMODE\\fR\nsets \\-\\-mode, unless", "\\fBprogram\\fR(1),\n",
        ".SH \"COMMANDS\"\n.TP\n\\fBtune\\fR\nfinds the fastest mode\n", "\\fBprogram\\-command\\-tune\\fR(1)\n"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  EXPECT_EQ(page.find("Gone"), std::string::npos) << page;
  EXPECT_NE(print("--help").find("\nCommand\n  program command tune\n      finds the fastest mode;"),
            std::string::npos);
  EXPECT_NE(print("--help=man:a phrase").find("\\- a phrase\n"), std::string::npos);
}

TEST(CommandLine, TakesFlagsAloneAndAnnouncesFormerNames) {
  bool quick = false;
  FlagSet flags("program", "", "");
  flags.add("quick", quick, "do not wait").former_name("fast");
  EXPECT_THROW(read_flags(flags, {"program", "other"}), Error);
  testing::internal::CaptureStderr();
  EXPECT_EQ(read_command_line(flags, {"program", "--fast", "other"}), std::vector<std::string>{"other"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "note: --fast has been renamed: taken as --quick=true\n");
}

}  // namespace
}  // namespace dtrain::cli
