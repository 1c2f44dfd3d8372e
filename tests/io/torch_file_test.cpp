// Files of PyTorch, Lightning and detectron2 (tests/io/torch/make.py wrote them), and hostile pickles.
#include "dtrain/io/torch_file.h"

#include <cmath>

#include "dtrain/io/array_file.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using namespace std::string_literals;
using Values = std::vector<float>;

std::string torch_path(const std::string& name) { return (source_dir() / "tests/io/torch" / name).string(); }

const TorchEntry& entry(const TorchFile& file, const std::string& name) {
  for (const TorchEntry& one : file.entries())
    if (one.name == name) return one;
  throw Error(concat(file.path(), " has no ", name));
}

// Error of a file with these bytes, which must name the file.
std::string error_of(const std::string& bytes) {
  const TempDirectory folder;
  const std::string path = (folder.path() / "x.pth").string();
  write_file(path, bytes);
  try {
    const TorchFile file(path);
    for (const TorchEntry& one : file.entries()) file.read_floats(one.name);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_TRUE(contains(error.what(), path));
    return error.what();
  }
  return "";
}

TEST(TorchFile, ReadsTensorsOfAllTypesAndStrides) {
  for (const char* name : {"archive.pth", "legacy.pth"}) {
    SCOPED_TRACE(name);
    const TorchFile file(torch_path(name));
    ASSERT_EQ(file.entries().size(), 12u);
    EXPECT_EQ(file.location(), "");
    EXPECT_EQ(entry(file, "base").shape, Shape({3, 4}));
    EXPECT_EQ(file.read_floats("base"), (Values{0, .25, .5, .75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75}));
    EXPECT_EQ(entry(file, "transposed").shape, Shape({4, 3}));
    EXPECT_EQ(file.read_floats("transposed"), (Values{0, 1, 2, .25, 1.25, 2.25, .5, 1.5, 2.5, .75, 1.75, 2.75}));
    EXPECT_EQ(file.read_floats("part"), (Values{1.5, 1.75, 2.5, 2.75}));
    EXPECT_EQ(entry(file, "half").dtype, "F16");
    EXPECT_EQ(file.read_floats("half"), (Values{0, .25, .5, .75}));
    EXPECT_EQ(entry(file, "brain").dtype, "BF16");
    EXPECT_EQ(file.read_floats("brain"), (Values{1, 1.25, 1.5, 1.75}));
    EXPECT_EQ(entry(file, "double").dtype, "F64");
    EXPECT_EQ(file.read_floats("double"), (Values{2, 2.25, 2.5, 2.75}));
    EXPECT_EQ(file.read_floats("expanded"), (Values{1, 2, 1, 2, 1, 2}));
    EXPECT_EQ(file.read_floats("empty"), Values{});
    EXPECT_EQ(file.read_floats("scalar"), Values{2.5});
    EXPECT_EQ(file.read_floats("parameter"), (Values{0, .25, .5, .75, 1, 1.25, 1.5, 1.75}));
    EXPECT_EQ(entry(file, "batches").dtype, "I64");
    EXPECT_EQ(entry(file, "flags").dtype, "BOOL");
    EXPECT_EQ(file.read_bytes("batches"), "\7\0\0\0\0\0\0\0"s);
    EXPECT_EQ(file.read_bytes("flags"), "\1\0"s);
    EXPECT_EQ(file.read_bytes("half"), "\x00\x00\x00\x34\x00\x38\x00\x3a"s);  // 0, 0.25, 0.5, 0.75
    expect_error([&] { file.read_floats("batches"); }, Fault::data, "elements of I64");
    expect_error([&] { file.read_floats("other"); }, Fault::config, "there is no tensor other");
  }
}

TEST(TorchFile, FindsTheStateDictOfACheckpoint) {
  for (const char* name : {"checkpoint.pth", "checkpoint_legacy.pth"}) {
    SCOPED_TRACE(name);
    const TorchFile file(torch_path(name));
    EXPECT_EQ(file.location(), "model");
    EXPECT_EQ(file.others(), (std::vector<std::string>{"optimizer", "epoch", "args"}));
    ASSERT_EQ(file.entries().size(), 2u);
    EXPECT_EQ(file.read_floats("weight"), (Values{0.5, -1.5}));
    EXPECT_EQ(file.read_floats("bias"), Values{0.25});
  }
  EXPECT_EQ(TorchFile(torch_path("lightning.ckpt")).read_floats("model.weight"), (Values{0.5, -1.5}));
}

TEST(TorchFile, FindsTheStateDictBesideTensors) {
  const TorchFile file((source_dir() / "tests/parity/tool_files/weights/distributed.pth.tar").string());
  EXPECT_EQ(file.location(), "state_dict");
  EXPECT_EQ(file.others(), (std::vector<std::string>{"epoch", "arch", "best_acc1", "optimizer"}));
  ASSERT_EQ(file.entries().size(), 8u);
  EXPECT_EQ(entry(file, "module.0.weight").shape, Shape({4, 3, 3, 3}));
}

TEST(TorchFile, ReadsNumpyArraysOfDetectron2) {
  for (const char* name : {"detectron2_2.pkl", "detectron2_5.pkl"}) {
    SCOPED_TRACE(name);
    const TorchFile file(torch_path(name));
    EXPECT_EQ(file.location(), "model");
    for (const char* array : {"conv.weight", "columns", "double"}) {
      EXPECT_EQ(entry(file, array).shape, Shape({2, 3}));
      EXPECT_EQ(file.read_floats(array), (Values{0, 100, 200, 300, 400, 500}));
    }
  }
}

TEST(TorchFile, IsAnArrayFile) {
  const ArrayFile file(torch_path("lightning.ckpt"));
  EXPECT_EQ(file.format(), ArrayFormat::torch);
  EXPECT_EQ(file.read(*file.find("weight")), (Values{0.5, -1.5}));  // without "model."
  EXPECT_EQ(file.left_out(), "epoch, pytorch-lightning_version, hyper_parameters; the weights are under state_dict");
  const ArrayFile archive(torch_path("archive.pth"));
  EXPECT_EQ(archive.left_out(), "");
  EXPECT_FALSE(archive.readable(*archive.find("batches")));
}

TEST(TorchFile, IsNoOtherFileByItsName) {
  const TempDirectory folder;
  const std::string path = (folder.path() / "x.npz").string();
  write_file(path, "<!DOCTYPE html>\n<html><body>404</body></html>");
  expect_error([&] { ArrayFile file(path); }, Fault::data, "an HTML page");
  write_file(path, read_file(torch_path("archive.pth")));
  EXPECT_EQ(ArrayFile(path).format(), ArrayFormat::torch);
}

TEST(TorchFile, ExecutesNothing) {
  const auto error = [](const char* name) { return error_of(read_file(torch_path(name))); };
  EXPECT_TRUE(contains(error("system.pth"), "it names posix.system, which is no part of tensors"));
  EXPECT_TRUE(contains(error("module.pth"), "it names torch.nn.modules.linear.Linear"));
  EXPECT_TRUE(contains(error("module.pth"), "torch.save(model.state_dict(), FILE)"));
  EXPECT_TRUE(contains(error("script.pt"), "a TorchScript module, which contains code"));
  for (const auto& [opcode, name] :
       {std::pair{"i"s, "INST"}, {"o"s, "OBJ"}, {"\x82\1"s, "EXT"}, {"\x92"s, "NEWOBJ_EX"}, {"\x97"s, "NEXT_BUFFER"}})
    EXPECT_TRUE(contains(error_of("\x80\2(" + opcode), "opcode "s + name)) << name;
}

TEST(TorchFile, NamesDamage) {
  EXPECT_TRUE(contains(error_of("\x80\2}q\1"), "truncated"));
  EXPECT_TRUE(contains(error_of("\x80\2}."), "it holds no tensors; its keys are none"));
  EXPECT_TRUE(contains(error_of("\x80\2]."), "it holds a list; expected a state_dict"));
  EXPECT_TRUE(contains(error_of("\x80\2."), "the stack is empty"));
  EXPECT_TRUE(contains(error_of("\x80\2h\7."), "the memo has no entry 7"));
  EXPECT_TRUE(contains(error_of("\x80\2t."), "there is no mark on the stack"));
  EXPECT_TRUE(contains(error_of("\x80\2\xff"), "255 is no opcode"));
  EXPECT_TRUE(contains(error_of("\x80\2}X\xff\xff\xff\xff"), "truncated: 4294967295 bytes are needed, 0 are left"));
  const std::string archive = read_file(torch_path("archive.pth")), legacy = read_file(torch_path("legacy.pth"));
  for (size_t size = 1; size < legacy.size(); size += 7) EXPECT_NE(error_of(legacy.substr(0, size)), "") << size;
  for (size_t size = 1; size < archive.size(); size += 31) EXPECT_NE(error_of(archive.substr(0, size)), "") << size;
  std::string flipped = archive;
  flipped[flipped.find(std::string("\0\0\x80\x3e\0\0\0\x3f", 8))] ^= 1;  // of the data of `base`
  EXPECT_TRUE(contains(error_of(flipped), "its checksum differs"));
}

// Opcodes that push a tensor: `size` and `stride` are opcodes of tuples.
std::string tensor_opcodes(const std::string& size, const std::string& stride, int elements) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((U\7storagectorch\nFloatStorage\nU\0010U\3cpuK"s +
         static_cast<char>(elements) + "tQK\0"s + size + stride + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

// A pickle that is a dictionary with one tensor.
std::string tensor_pickle(const std::string& size, const std::string& stride, int elements) {
  return "\x80\2}U\1w" + tensor_opcodes(size, stride, elements) + "s.";
}

TEST(TorchFile, RefusesTwoTensorsOfOneName) {
  const std::string one = tensor_opcodes("K\1\x85", "K\1\x85", 4), four = tensor_opcodes("K\4\x85", "K\1\x85", 4);
  EXPECT_TRUE(
      contains(error_of("\x80\2}U\1w" + one + "sU\1w" + four + "s."), "tensor w: there is another one of this name"));
  // "a.w" of the dictionary, and "w" of its dictionary "a".
  EXPECT_TRUE(contains(error_of("\x80\2}U\3a.w" + one + "sU\1a}U\1w" + four + "ss."),
                       "tensor a.w: there is another one of this name"));
}

TEST(TorchFile, LimitsTensorsToTheirStorage) {
  const std::string million = "J\0\0\x10\0"s;
  EXPECT_TRUE(contains(error_of(tensor_pickle("K\x05\x85", "K\1\x85", 4)), "it ends at element 4 of a storage of 4"));
  EXPECT_TRUE(contains(error_of(tensor_pickle("K\2K\2\x86", "K\1\x85", 4)), "1 strides for the shape [2, 2]"));
  EXPECT_TRUE(contains(error_of(tensor_pickle("J\xff\xff\xff\xff\x85", "K\1\x85", 4)), "an integer, not negative"));
  EXPECT_TRUE(
      contains(error_of(tensor_pickle(million + million + "\x86", "K\0K\0\x86"s, 4)), "over 1 stored elements"));
  EXPECT_TRUE(
      contains(error_of(tensor_pickle(million + million + million + "\x87", million + million + million + "\x87", 4)),
               "a shape whose elements cannot be counted"));
  const std::string most = "J\xff\xff\xff\x7f\x85";
  EXPECT_TRUE(contains(error_of(tensor_pickle(most, most, 4)), "its extent is beyond any storage"));
  EXPECT_TRUE(contains(error_of(tensor_pickle("K\4\x85", "K\1\x85", 4)), "its data is outside the pickle"));
}

TEST(TorchFile, RefusesCallsWithinCalls) {
  std::string size = "ctorch\nSize\nq\1";
  for (int i = 0; i < 100'000; ++i) size += "h\1";
  size += "K\1\x85";
  for (int i = 0; i <= 100'000; ++i) size += "\x85R";
  EXPECT_TRUE(contains(error_of(tensor_pickle(size, "K\1\x85", 4)), "expected a tuple of integers"));
}

TEST(TorchFile, LimitsTimeAndMemory) {
  // Each dictionary has 250 times the one before as its value.
  std::string nested = "\x80\2}q\0"s;
  for (int level = 1; level < 12; ++level) {
    nested += "}q"s + static_cast<char>(level) + "(";
    for (int i = 0; i < 250; ++i)
      nested += "U\2"s + static_cast<char>('0' + i / 50) + static_cast<char>('0' + i % 50) + "h" +
                static_cast<char>(level - 1);
    nested += "u";
  }
  EXPECT_TRUE(contains(error_of(nested + "."), "share too many items"));
  EXPECT_TRUE(contains(error_of("\x80\2" + std::string(1'000'001, ']')), "more than 1000000 values"));
  EXPECT_TRUE(contains(error_of("\x80\2]" + std::string(1'000'001, '2')), "the stack is too deep"));
}

TEST(SafetensorsShards, ReadThroughTheirIndex) {
  const TempDirectory folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const auto shard = [&](const char* file, const char* tensor, float value) {
    const TensorSpec spec{tensor, DType::f32, {1}};
    write_file(path(file), safetensors_header({&spec, 1}) + std::string(reinterpret_cast<const char*>(&value), 4));
  };
  shard("m-1.safetensors", "a", 1.5f);
  shard("m-2.safetensors", "b", 2.5f);
  const auto index = [&](const std::string& map) {
    write_file(path("m.safetensors.index.json"), "{\"metadata\": {\"total_size\": 8}, \"weight_map\": " + map + "}");
    return path("m.safetensors.index.json");
  };
  const ArrayFile file(index(R"({"a": "m-1.safetensors", "b": "m-2.safetensors"})"));
  EXPECT_EQ(file.read(*file.find("a")), Values{1.5f});
  EXPECT_EQ(file.read(*file.find("b")), Values{2.5f});
  const auto refused = [&](const std::string& map, const char* part) {
    expect_error([&] { ArrayFile other(index(map)); }, Fault::data, part);
  };
  refused(R"({"a": "m-1.safetensors", "c": "m-2.safetensors"})", "tensor b is not listed");
  refused(R"({"a": "m-1.safetensors", "b": "m-1.safetensors"})", "there is no tensor b");
  refused(R"({"a": "../m-1.safetensors"})", "expected the name of a file in the same folder");
  refused(R"({"a": "none.safetensors"})", "none.safetensors");
  refused(R"({"a": 1})", "no index of safetensors files");
  refused("{}", "no index of safetensors files");
}

}  // namespace
}  // namespace dtrain
