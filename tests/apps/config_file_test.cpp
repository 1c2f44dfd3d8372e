// Configuration files: precedence, errors with line numbers, and the configuration saved by a run.
#include "apps/cli/config_file.h"

#include "apps/cli/flags.h"
#include "apps/cli/options/recipe.h"
#include "dtrain/core/error.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

struct SomeFlags {
  SomeFlags() {
    flags.group("Numbers");
    flags.add("count", count, "how many", cli::kPositiveCount);
    flags.add("rate", rate, "share", cli::kShare).former_name("ratio");
    flags.add("quick", quick, "hurry");
    flags.add("name", name, "name");
    flags.add("steps", steps, "when");
    flags.add_choice("mode", mode, {"fast", "slow"}, "how");
    flags.add_config_file();
  }
  int64_t count = 7;
  double rate = 0.5;
  bool quick = false;
  std::string name, mode = "fast";
  std::vector<std::string> steps;
  cli::FlagSet flags{"program", "", ""};
};

class ConfigFile : public testing::Test, protected SomeFlags {
 protected:
  void parse(const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> argv = {"program", "--config=" + path};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    flags.parse(argv);
  }
  // The message after the path.
  std::string failure(const std::string& text) const {
    write_file(path, text);
    SomeFlags fresh;
    try {
      fresh.flags.parse({"program", "--config=" + path});
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::config);
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(path)) << message;
      return message.substr(std::min(path.size(), message.size()));
    }
    return "no error";
  }

  TempDirectory directory;
  std::string path = directory / "run.toml";
};

TEST_F(ConfigFile, SetsFlagsOfAllKindsInTablesOfAnyName) {
  write_file(
      path,
      "count = 3\n[anything.at.all]\nquick = true\nrate = 1 # an integer is a number\n[model]\nname = 'a \"b\", c'\n"
      "steps = [10, '20', 2.5]\nmode = 'SLOW'\n");
  parse();
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(quick);
  EXPECT_EQ(rate, 1);
  EXPECT_EQ(name, "a \"b\", c");
  EXPECT_EQ(steps, (std::vector<std::string>{"10", "20", "2.5"}));
  EXPECT_EQ(mode, "slow");
  EXPECT_TRUE(flags.given("count"));
}

TEST_F(ConfigFile, PrecedenceOfCommandLineFileAndImpliedFlags) {
  write_file(path, "count = 3\nrate = 0.25\n");
  parse({"--count=4"});
  flags.imply("rate", "0.75", "recipe x");
  flags.imply("mode", "slow", "recipe x");
  EXPECT_EQ(count, 4);
  EXPECT_EQ(rate, 0.25);
  EXPECT_EQ(mode, "slow");
  EXPECT_EQ(flags.config_text(),
            "# The flags of a run of program, and what set each; --config takes this file as it is.\n\n# Numbers\n"
            "count = 4  # command line\nrate = 0.25  # " +
                path + ":2\n# mode = \"slow\"  # recipe x\n");
}

TEST_F(ConfigFile, ErrorsHaveLineNumbers) {
  EXPECT_EQ(failure("count = 3\n\ncuont = 4\n"), ":3: unknown flag cuont, did you mean count?; --help lists all flags");
  EXPECT_EQ(failure("noquick = true\n"), ":1: unknown flag noquick, did you mean quick?; --help lists all flags");
  EXPECT_EQ(failure("count = \"3\"\n"), ":1: count: expected an integer, found a string");
  EXPECT_EQ(failure("\ncount = 1.5\n"), ":2: count: expected an integer, found a number");
  EXPECT_EQ(failure("quick = 1\n"), ":1: quick: expected true or false, found an integer");
  EXPECT_EQ(failure("steps = 'a,b'\n"), ":1: steps: expected an array of strings or numbers, found a string");
  EXPECT_EQ(failure("name = ['a']\n"), ":1: name: expected a string, found an array of strings or numbers");
  EXPECT_EQ(failure("steps = ['a,b']\n"),
            ":1: steps: element 'a,b': expected one that is not empty and has no comma in it");
  EXPECT_EQ(failure("steps = [[1]]\n"), ":1: steps: expected an array of strings or numbers");
  EXPECT_EQ(failure("name = 2026-01-01\n").substr(0, 50), ":1: name: expected a string, a number, true, false");
  EXPECT_EQ(failure("rate = 2.0\n"), ":1: --rate: expected a number of at most 1, found 2");
  EXPECT_EQ(failure("mode = 'medium'\n"), ":1: --mode: expected one of fast|slow, found 'medium'");
  EXPECT_EQ(failure("config = 'other.toml'\n"), ":1: a configuration cannot set --config");
  EXPECT_EQ(failure("count = = 3\n").substr(0, 4), ":1: ");
  EXPECT_EQ(failure("\n[)").substr(0, 4), ":2: ");
}

TEST_F(ConfigFile, CharactersOfAllLengthsAreAllowedInStringsAndCommentsAlone) {
  const std::string all = "a\xC2\xA7\xDF\xBF\xE0\xA0\x80\xE3\x80\x80\xEF\xBB\xBF\xEF\xBF\xBF\xF0\x9F\x9A\x80";
  write_file(path, "\xEF\xBB\xBF# " + all + "\nname = '" + all + "'  # " + all + "\ncount = 3\n");
  parse();
  EXPECT_EQ(name, all);
  EXPECT_EQ(count, 3);
  write_file(path, "name = \"\"\"\\\n\xC2\xA7\"\"\"\n");
  SomeFlags continued;
  continued.flags.parse({"program", "--config=" + path});
  EXPECT_EQ(continued.name, "\xC2\xA7");
  EXPECT_EQ(failure("\n\xC2\xA7 = 3\n").substr(0, 4), ":2: ");
  EXPECT_EQ(failure("count = \xD0\x9A-4\n").substr(0, 4), ":1: ");
  EXPECT_EQ(failure("count\xC2\xA0= 3\n").substr(0, 4), ":1: ");
  EXPECT_EQ(failure("name = '\xC2'\n").substr(0, 4), ":1: ");
}

std::string repeated(const std::string& part, size_t count) {
  std::string text;
  while (count-- > 0) text += part;
  return text;
}

// toml++ recurses over the parsed tree: a key of 15,500 parts overflowed the stack.
TEST_F(ConfigFile, DeepKeysAndBracketsAreRefusedBeforeTheParser) {
  const std::string expected = ", expected the name of a flag, alone or in a table";
  const std::string key = ":2: a key or value of more than 16 parts" + expected;
  EXPECT_EQ(failure("\na" + repeated(".a", 15500) + " = 1\n"), key);
  EXPECT_EQ(failure("\n[a" + repeated(" . \"x]\"", 100000) + "]\n"), key);
  EXPECT_EQ(failure("x = {y = '''\n''''', a" + repeated(".a", 30000) + " = 1}\n"), key);
  const std::string brackets = ":1: more than 16 brackets open at a time" + expected;
  EXPECT_EQ(failure("x = " + repeated("{a.b = ", 40000)), brackets);
  EXPECT_EQ(failure("x = " + repeated("[", 17)), brackets);
  const std::string deep = "a" + repeated(".a", 15500) + " = 1";
  EXPECT_FALSE(cli::same_settings(deep, deep));
}

// Strings and comments end neither too late, which would hide a key, nor too early, which would invent one.
TEST_F(ConfigFile, DotsAndBracketsInStringsAndCommentsDoNotCount) {
  const std::string dots = repeated(".[", 20), deep = "\na" + repeated(".a", 20) + " = 1\n";
  for (const std::string& line :
       {"# \" ' " + dots, "name = '" + dots + "'", "name = \"\\\"" + dots + "\"", std::string("name = '\\'"),
        std::string("name = ''"), "name = '''" + dots + "''" + dots + "\n" + dots + "'''''",
        std::string("name = '''a''''  # '"), std::string("name = \"\"\"\"\"\""),
        "name = \"\"\"" + dots + "\\\"\"" + dots + "\"\"\"\"", "steps = ['" + dots + "', \"" + dots + "\"]",
        "name = \"\"\"\\\n  " + dots + "\"\"\""}) {
    EXPECT_EQ(failure(line + "\n"), "no error") << line;
    EXPECT_NE(failure(line + deep).find("a key or value of more than 16 parts"), std::string::npos) << line;
  }
  EXPECT_EQ(failure("\nname = 'a" + deep).substr(0, 4), ":3: ");  // an unterminated string ends with its line
}

TEST_F(ConfigFile, DuplicateFlagsNameBothLines) {
  EXPECT_EQ(failure("[a]\nrate = 0.1\n[b]\nratio = 0.2\n"), ":4: ratio is set twice; first at " + path + ":2");
}

TEST_F(ConfigFile, MissingFileIsAnError) { EXPECT_THROW(parse(), Error); }

TEST_F(ConfigFile, WrittenFilesRoundTrip) {
  flags.parse({"program", "--name=\"\\\n\t\x7f\u00e4 #", "--steps=1,2.5,x y", "--rate=1e-7", "--quick", "--count=5"});
  write_file(path, flags.config_text());
  SomeFlags read;
  read.flags.parse({"program", "--config=" + path});
  EXPECT_EQ(read.name, name);
  EXPECT_EQ(read.steps, steps);
  EXPECT_EQ(read.rate, rate);
  EXPECT_EQ(read.quick, quick);
  EXPECT_EQ(read.count, count);
}

TEST(ConfigText, SettingsAreComparedWithoutTheirComments) {
  EXPECT_TRUE(cli::same_settings("a = 1 # here\nb = 'x'", "b = \"x\"\na = 1 # there"));
  EXPECT_FALSE(cli::same_settings("a = 1", "a = 2"));
  EXPECT_FALSE(cli::same_settings("a = 1", "a ="));
}

using ConfigOfRun = CnnBenchmarks;

TEST_F(ConfigOfRun, ARunLeavesItsConfigurationWhichRepeatsIt) {
  const ProgramResult first = train(real("first"));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string config = path("first") + "/config.toml", kept = read_file(config);
  EXPECT_NE(kept.find("\ninit_learning_rate = 0.1  # command line\n"), std::string::npos) << kept;
  const ProgramResult second = train({"--config=" + config, "--train_dir=" + path("second")});
  ASSERT_EQ(second.code, 0) << second.err;
  expect_equal_checkpoints("first", "second");
  // Equal flags leave the file unchanged; other flags save the old one.
  const ProgramResult again = train({"--config=" + config, "--num_batches=24"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(path("first") + "/config-24.toml"), kept);
  EXPECT_NE(read_file(config).find("\nnum_batches = 24  # command line\n"), std::string::npos);
  ASSERT_EQ(train({"--config=" + config, "--num_batches=26"}).code, 0);
  ASSERT_EQ(train({"--config=" + config, "--num_batches=26"}).code, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("first")), {}), 5);  // checkpoints, lock and three of these
}

TEST_F(ConfigOfRun, PrintsTheConfigurationWithWhatARecipeAdds) {
  write_file(path("run.toml"), "[update]\nmomentum = 0.8\nrecipe = 'aws'\n");
  const ProgramResult printed =
      train({"--config=" + path("run.toml"), "--weight_decay=0.25", "--print_config", "--batch_size=8"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  for (const std::string& line :
       {"recipe = \"aws\"  # " + path("run.toml") + ":3", "momentum = 0.8  # " + path("run.toml") + ":2",
        std::string("weight_decay = 0.25  # command line"), std::string("# zero_gamma = true  # recipe aws")})
    EXPECT_NE(printed.out.find("\n" + line + "\n"), std::string::npos) << line << "\n" << printed.out;
  write_file(path("printed.toml"), printed.out);
  const ProgramResult same = train({"--config=" + path("printed.toml"), "--print_config"});
  EXPECT_TRUE(cli::same_settings(same.out, printed.out)) << same.out;
  EXPECT_EQ(train({"--config=" + path("none.toml")}).code, 1);
}

}  // namespace
}  // namespace dtrain
