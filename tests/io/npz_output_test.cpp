// NpzOutput: exact bytes, round trip, and rejected input.
#include "dtrain/io/npz_output.h"

#include "dtrain/io/npz.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using namespace std::string_literals;

class NpzWritten : public testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "x.npz").string(); }
  std::string bytes_of(const std::vector<TensorSpec>& arrays, const void* data) const {
    AtomicFile file(path());
    NpzOutput output(file.output());
    for (const TensorSpec& array : arrays) output.add(array, data);
    output.finish();
    file.commit();
    return read_file(path());
  }

  // Two elements of one byte.
  std::vector<float> values_of(const std::string& type) const {
    AtomicFile written(path());
    NpzOutput output(written.output());
    output.add(SafetensorsEntry{"x", type, {2}}, type == "BOOL" ? "\1\0" : "\xff\x7f");
    output.finish();
    written.commit();
    const NpzFile file(path());
    return file.read(file.entries()[0]);
  }

  TempDirectory folder_;
};

TEST_F(NpzWritten, IsReadBack) {
  const float values[] = {1, -2.5f, 3e-40f, 4, 5, 6};
  bytes_of(
      {{"a/W", DType::f32, {2, 3}}, {"b", DType::f32, {3}}, {"empty", DType::f32, {0, 7}}, {"one", DType::f32, {}}},
      values);
  const NpzFile file(path());
  ASSERT_EQ(file.entries().size(), 4u);
  EXPECT_EQ(file.entries()[0].name, "a/W");
  EXPECT_EQ(file.entries()[0].array.shape, (Shape{2, 3}));
  EXPECT_EQ(file.entries()[0].array.dtype, "f4");
  EXPECT_EQ(file.read(file.entries()[0]), std::vector<float>(values, values + 6));
  EXPECT_EQ(file.read(*file.find("b")), std::vector<float>(values, values + 3));
  EXPECT_EQ(file.find("empty")->array.shape, (Shape{0, 7}));
  EXPECT_EQ(file.read(*file.find("one")), std::vector<float>{1});
  const int64_t count = 7;
  bytes_of({{"n", DType::i64, {}}}, &count);
  const NpzFile counts(path());
  EXPECT_EQ(counts.read(counts.entries()[0]), std::vector<float>{7});
}

TEST_F(NpzWritten, HoldsAllTypesOfNumpy) {
  const std::string elements = "\1\0\xff\x7f\x80\3\0\1\x40\2\xfe\0\5\6\7\x3f"s;
  for (const auto& [type, numpy, bytes] :
       std::vector<std::tuple<std::string, std::string, size_t>>{{"BOOL", "|b1", 1},
                                                                 {"U8", "|u1", 1},
                                                                 {"I8", "|i1", 1},
                                                                 {"I16", "<i2", 2},
                                                                 {"U16", "<u2", 2},
                                                                 {"F16", "<f2", 2},
                                                                 {"I32", "<i4", 4},
                                                                 {"U32", "<u4", 4},
                                                                 {"F32", "<f4", 4},
                                                                 {"I64", "<i8", 8},
                                                                 {"U64", "<u8", 8},
                                                                 {"F64", "<f8", 8}}) {
    SCOPED_TRACE(type);
    AtomicFile written(path());
    NpzOutput output(written.output());
    output.add(SafetensorsEntry{"x", type, {2}}, elements.data());
    output.finish();
    written.commit();
    EXPECT_TRUE(contains(read_file(path()), "{'descr': '" + numpy + "'"));
    const NpzFile file(path());
    EXPECT_EQ(file.entries()[0].array.dtype, numpy.substr(1));
    EXPECT_EQ(file.read_bytes(file.entries()[0]), elements.substr(0, 2 * bytes));
    EXPECT_EQ(file.read(file.entries()[0]).size(), 2u);
  }
  EXPECT_EQ(values_of("BOOL"), (std::vector<float>{1, 0}));
  EXPECT_EQ(values_of("I8"), (std::vector<float>{-1, 127}));
}

// As numpy.lib.format writes it, with elements at a multiple of 64 bytes in the member.
TEST_F(NpzWritten, HasNumpysHeader) {
  const float value = 1;
  const std::string bytes = bytes_of({{"w", DType::f32, {1}}}, &value),
                    again = bytes_of({{"w", DType::f32, {1}}}, &value);
  EXPECT_EQ(bytes, again);
  const size_t begin = bytes.find("\x93NUMPY");
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  header.append(128 - 10 - 1 - header.size(), ' ');
  EXPECT_EQ(bytes.substr(begin, 128), std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n');
}

// As Python's zipfile does; else NumPy would read another name.
TEST_F(NpzWritten, MarksNamesAsUtf8) {
  const float value = 1;
  for (const auto& [name, flags] : {std::pair{"w", "\0\0"s}, {"\xc3\xb6", "\0\x08"s}}) {
    const std::string bytes = bytes_of({{name, DType::f32, {1}}}, &value);
    EXPECT_EQ(bytes.substr(6, 2), flags) << name;
    EXPECT_EQ(bytes.substr(bytes.find("PK\1\2") + 8, 2), flags) << name;
    EXPECT_EQ(NpzFile(path()).entries()[0].name, name);
  }
}

TEST_F(NpzWritten, RefusesWhatItCannotHold) {
  const int64_t zero = 0;
  AtomicFile file(path());
  NpzOutput output(file.output());
  output.add({"a", DType::i64, {}}, &zero);
  expect_error([&] { output.add({"a", DType::i64, {}}, &zero); }, Fault::config, "expected another name");
  expect_error([&] { output.add({"", DType::i64, {}}, &zero); }, Fault::config, "expected another name");
  expect_error([&] { output.add({std::string(1001, 'n'), DType::i64, {}}, &zero); }, Fault::config, "1000");
  expect_error(
      [&] {
        output.add({"brain", DType::bf16, {}}, &zero);
      },
      Fault::config, "array brain: NumPy does not have the type BF16");
  expect_error([&] { output.add({"large", DType::i64, {1 << 29}}, &zero); }, Fault::config, "4 GiB");
}

}  // namespace
}  // namespace dtrain
