// Damaged and malicious checkpoints: bounded memory and time, and fallback to an older one.
#include <nlohmann/json.hpp>

#include "libdtrain/io/crc32c.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

std::string checksum(const std::string& bytes) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32c(bytes.data(), bytes.size()));
  return text;
}

class HostileCheckpoints : public CnnBenchmarks {
 protected:
  // Checkpoints after steps 2 and 4; a resumed run makes six steps.
  Arguments run(int steps) const {
    return synthetic() + Arguments{"--device=cpu", "--num_warmup_batches=0", "--save_model_steps=2",
                                   "--num_batches=" + std::to_string(steps), "--train_dir=" + path("run")};
  }
  void SetUp() override { ASSERT_EQ(train(run(4)).code, 0); }

  std::string newest(const std::string& file) const { return checkpoint("run", 4) + "/" + file; }

  // Replaces state.json by `text`, with a manifest of valid checksums.
  void forge_state(const std::string& text) const {
    write_file(newest("state.json"), text);
    nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(read_file(newest("MANIFEST.json")));
    manifest.erase("checksum");
    manifest["files"]["state.json"] = {{"bytes", text.size()}, {"crc32c", checksum(text)}};
    manifest["checksum"] = checksum(manifest.dump(2));
    write_file(newest("MANIFEST.json"), manifest.dump(2) + "\n");
  }
  nlohmann::ordered_json state() const { return nlohmann::ordered_json::parse(read_file(newest("state.json"))); }

  // The run resumes from step 2 with a notice that contains `part`.
  void expect_passed_over(const std::string& part) const {
    const ProgramResult continued = train(run(6));
    EXPECT_EQ(continued.code, 0) << continued.err;
    EXPECT_TRUE(contains(continued.out, "Restored step 2 from ")) << continued.out;
    EXPECT_TRUE(contains(continued.err, "note: skipped a damaged checkpoint: ")) << continued.err;
    EXPECT_TRUE(contains(continued.err, part)) << continued.err;
  }
};

constexpr size_t kMany = 60'000'000;

TEST_F(HostileCheckpoints, AManifestOfBracketsIsNotRead) {
  write_file(newest("MANIFEST.json"), std::string(kMany, '['));
  expect_passed_over("MANIFEST.json: 60000000 bytes, expected at most");
}

TEST_F(HostileCheckpoints, ANestedManifestIsNotParsed) {
  write_file(newest("MANIFEST.json"), std::string(10'000, '['));
  expect_passed_over("MANIFEST.json: JSON nested more than 16 deep");
}

TEST_F(HostileCheckpoints, HugeNumbersInAManifestAreRejected) {
  nlohmann::ordered_json forged = nlohmann::ordered_json::parse(read_file(newest("MANIFEST.json")));
  forged["files"]["model.safetensors"]["bytes"] = 6.5e73;
  write_file(newest("MANIFEST.json"), forged.dump(2) + "\n");
  expect_passed_over("MANIFEST.json: damaged: bytes is 6.5e+73, expected 0 to ");
}

TEST_F(HostileCheckpoints, AStateOfBracketsIsNotRead) {
  forge_state(std::string(kMany, '['));
  expect_passed_over("state.json: 60000000 bytes, expected at most");
}

TEST_F(HostileCheckpoints, AStateOfManySettingsIsNotParsed) {
  const std::string begin = R"("settings": {)";
  std::string text = read_file(newest("state.json")), many;
  for (int i = 0; i < 80'000; ++i) many += "\"key " + std::to_string(i) + R"(": "value",)";
  forge_state(text.insert(text.find(begin) + begin.size(), many));
  expect_passed_over("state.json: JSON of more than 10000 values");
}

TEST_F(HostileCheckpoints, NumbersOutOfRangeAreRejected) {
  const auto with = [&](const std::string& pointer, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json forged = state();
    forged[nlohmann::ordered_json::json_pointer(pointer)] = value;
    return forged.dump(2) + "\n";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with("/step", UINT64_MAX), "step is 18446744073709551615"},
      {with("/step", 3), "step is 3, the manifest says 4"},
      {with("/cursor", UINT64_MAX), "cursor is 18446744073709551615"},
      {with("/cursor", -1), "cursor is -1"},
      {with("/loss_scale/value", -1), "loss scale: value is -1"},
      {with("/loss_scale/value", 1e300), "loss scale: value is 1e+300"},
      {with("/loss_scale/double_after", int64_t{1} << 40), "double_after is 1099511627776"},
      {with("/loss_scale/good_steps", 1.5), "good_steps is 1.5"}};
  for (const auto& [text, part] : cases) {
    forge_state(text);
    expect_passed_over("state.json: damaged: " + part);
    std::filesystem::remove_all(path("run"));
    ASSERT_EQ(train(run(4)).code, 0);
  }
}

TEST_F(HostileCheckpoints, AGlobalBatchOutOfRangeExitsWithFive) {
  for (const char* batch : {"9223372036854775807", "-4", "0", "4 "}) {
    nlohmann::ordered_json forged = state();
    forged["identity"]["global batch"] = batch;
    forge_state(forged.dump(2) + "\n");
    const ProgramResult refused = train(run(6));
    EXPECT_EQ(refused.code, 5) << batch << refused.err;
    EXPECT_TRUE(contains(refused.err, std::string("global batch is '") + batch + "', expected 1 to 2147483647"))
        << refused.err;
  }
}

// Each bit of the global batch size, which is read first.
TEST_F(HostileCheckpoints, AFlippedBitSkipsTheCheckpoint) {
  const std::string text = read_file(newest("state.json"));
  const std::string key = R"("global batch": ")";
  for (int bit = 0; bit < 8; ++bit) {
    std::filesystem::remove_all(path("run"));
    ASSERT_EQ(train(run(4)).code, 0);
    std::string flipped = text;
    flipped.at(text.find(key) + key.size()) ^= static_cast<char>(1 << bit);
    write_file(newest("state.json"), flipped);
    expect_passed_over("state.json: damaged: CRC-32C ");
  }
}

TEST_F(HostileCheckpoints, FoldersThatAreNoCheckpointsAreLeftAlone) {
  std::filesystem::remove_all(checkpoint("run", 2));
  std::filesystem::remove_all(checkpoint("run", 4));
  const std::vector<std::string> others = {"step-", "step-007", "step-99999999999999999999999", "step--1", "step-+1"};
  for (const std::string& name : others) std::filesystem::create_directory(path("run") + "/checkpoints/" + name);
  const ProgramResult fresh = train(run(2));
  EXPECT_EQ(fresh.code, 0) << fresh.err;
  EXPECT_FALSE(contains(fresh.out, "Restored")) << fresh.out;
  for (const std::string& name : others)
    EXPECT_TRUE(std::filesystem::is_directory(path("run") + "/checkpoints/" + name)) << name;
}

}  // namespace
}  // namespace dtrain
