// NumPy's own files, and damaged ones. The files of tests/io/npz were written by numpy 1.24:
//   a = numpy.arange(6).reshape(2, 3)
//   numpy.savez("stored.npz", **{"conv0/W": (a / 4).astype("<f4"), "fortran": numpy.asfortranarray(a + 0.5),
//     "half": (a / 8 - 0.25).astype("<f2"), "bytes": a.astype("u1"), "int32": -a.astype("<i4"),
//     "int64": (a * 10**10).astype("<i8"), "scalar": numpy.float32(2.5), "empty": numpy.zeros((0, 3), "<f4")})
//   numpy.savez_compressed("deflated.npz", ...the same...)
//   numpy.savez("pickled.npz", objects=numpy.array([{}], dtype=object))
#include "dtrain/io/npz.h"

#include "dtrain/core/rng.h"
#include "tests/files.h"
#include "tests/npz_writer.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Values = std::vector<float>;

std::string numpy_file(const char* name) { return (source_dir() / "tests/io/npz" / name).string(); }

std::string npz_error(const std::string& bytes) {
  const TempDirectory folder;
  const std::string path = (folder.path() / "x.npz").string();
  write_file(path, bytes);
  try {
    const NpzFile file(path);
    for (const NpzEntry& entry : file.entries()) file.read(entry);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_TRUE(contains(error.what(), path));
    return error.what();
  }
  return "";
}

NpzWriter two_arrays(bool deflated) {
  NpzWriter writer;
  writer.add("a", "(2, 3)", {1, 2, 3, 4, 5, 6}, deflated);
  writer.add("b/W", "(4,)", {0, 0, 0, 0}, deflated);
  return writer;
}

void expect_header_error(const std::string& text, const std::string& part) {
  expect_error([&] { parse_npy_header(text); }, Fault::data, part);
}

TEST(Npz, ReadsWhatNumpyWrites) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const NpzFile file(numpy_file(name));
    ASSERT_EQ(file.entries().size(), 8u) << name;
    const auto values = [&](const char* array) { return file.read(*file.find(array)); };
    EXPECT_EQ(file.find("conv0/W")->array.shape, Shape({2, 3}));
    EXPECT_EQ(values("conv0/W"), (Values{0, 0.25f, 0.5f, 0.75f, 1, 1.25f}));
    EXPECT_TRUE(file.find("fortran")->array.fortran);
    EXPECT_EQ(values("fortran"), (Values{0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f}));
    EXPECT_EQ(file.find("half")->array.dtype, "f2");
    EXPECT_EQ(values("half"), (Values{-0.25f, -0.125f, 0, 0.125f, 0.25f, 0.375f}));
    EXPECT_EQ(values("bytes"), (Values{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(values("int32"), (Values{0, -1, -2, -3, -4, -5}));
    EXPECT_EQ(values("int64"), (Values{0, 1e10f, 2e10f, 3e10f, 4e10f, 5e10f}));
    EXPECT_EQ(file.find("scalar")->array.shape.rank(), 0);
    EXPECT_EQ(values("scalar"), Values{2.5f});
    EXPECT_EQ(values("empty"), Values{});
    EXPECT_EQ(file.find("absent"), nullptr);
  }
  expect_error([] { NpzFile{numpy_file("pickled.npz")}; }, Fault::data,
               "pickled.npz: member objects.npy: header of an array: expected numbers, found pickled Python objects");
}

TEST(Npz, HeadersOfAllVersions) {
  for (const int version : {1, 2, 3}) {
    NpzWriter writer;
    writer.members = {{"x.npy", NpzWriter::npy("{\"shape\":(1,),'fortran_order':True,'descr':'|u1'}", "\7", version)}};
    EXPECT_EQ(npz_error(writer.archive()), "");
  }
  NpzWriter writer;
  writer.members = {{"x.npy", NpzWriter::npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "1234", 4)}};
  EXPECT_TRUE(contains(npz_error(writer.archive()), "expected version 1.0, 2.0 or 3.0"));

  expect_header_error("", "a dictionary in braces");
  expect_header_error("{'descr': '<f4', 'fortran_order': False}", "descr, fortran_order and shape, once each");
  expect_header_error("{'descr': '<f4', 'descr': '<f4', 'shape': ()}", "once each");
  expect_header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", "once each");
  expect_header_error("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "once each");
  expect_header_error("{'descr': '>f4', 'fortran_order': False, 'shape': ()}",
                      "type '>f4', expected <f2, <f4, <f8, |b1");
  expect_header_error("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "pickled");
  expect_header_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "records");
  expect_header_error("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "True or False");
  expect_header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "integers");
  expect_header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "a comma between");
  expect_header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1)}", "at most six");
  expect_header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "be counted");
}

TEST(Npz, RefusesWhatDoesNotFitTogether) {
  for (const bool deflated : {false, true}) EXPECT_EQ(npz_error(two_arrays(deflated).archive()), "");
  EXPECT_TRUE(contains(npz_error("no archive at all, but a text of some length"), "no end record"));
  EXPECT_TRUE(contains(npz_error("PK"), "shorter than the end of one"));
  EXPECT_EQ(npz_error(NpzWriter{}.archive()), "");

  NpzWriter writer = two_arrays(false);
  writer.members[1].name = "a.npy";
  EXPECT_TRUE(contains(npz_error(writer.archive()), "member a.npy: a second one of this name"));
  writer.members[1].name = "a.txt";
  EXPECT_TRUE(contains(npz_error(writer.archive()), "member a.txt: expected a name that ends with .npy"));
  writer.members[1].name = "a\nb.npy";
  EXPECT_TRUE(contains(npz_error(writer.archive()), "no sound name"));
  writer = two_arrays(true);
  writer.add("c", "(5,)", {1, 2});
  EXPECT_TRUE(contains(npz_error(writer.archive()), "member c.npy: f4 [5] takes 20 bytes, found 8"));
  writer.members[2].bytes = "";
  EXPECT_TRUE(contains(npz_error(writer.archive()), "member c.npy: it has 0 bytes, expected more"));
}

// Fields of the central directory's first entry, at "PK\1\2".
TEST(Npz, RefusesWhatTheDirectoryGetsWrong) {
  const auto changed = [](bool deflated, size_t field, uint32_t value, size_t size) {
    std::string bytes = two_arrays(deflated).archive();
    std::memcpy(bytes.data() + bytes.find("PK\1\2") + field, &value, size);
    return npz_error(bytes);
  };
  EXPECT_TRUE(contains(changed(false, 8, 1, 2), "member a.npy: encrypted"));
  EXPECT_TRUE(contains(changed(false, 10, 12, 2), "compression method 12: expected 0 or 8"));
  EXPECT_TRUE(contains(changed(false, 10, 8, 2), "its header and the directory differ"));
  EXPECT_TRUE(contains(changed(true, 16, 1, 4), "its checksum differs"));
  EXPECT_TRUE(contains(changed(false, 20, 1, 4), "bytes cannot be packed in 1"));
  EXPECT_TRUE(contains(changed(true, 24, 0x7fffffff, 4), "2147483647 bytes cannot be packed in"));
  EXPECT_TRUE(contains(changed(true, 20, 100'000, 4), "its bytes overlap what follows"));
  EXPECT_TRUE(contains(changed(true, 20, 50, 4), "damaged or truncated"));
  EXPECT_TRUE(contains(changed(true, 24, 50, 4), "bytes is longer than"));
  EXPECT_TRUE(contains(changed(false, 42, 5, 4), "no header where the directory says"));
  EXPECT_TRUE(contains(changed(false, 28, 0xffff, 2), "the directory of members is truncated"));
}

TEST(Npz, SizesOf64Bits) {
  NpzWriter writer = two_arrays(true);
  writer.large = true;
  const std::string bytes = writer.archive();
  EXPECT_EQ(npz_error(bytes), "");
  std::string changed = bytes;
  changed[bytes.find("PK\6\7") + 8] ^= 1;
  EXPECT_TRUE(contains(npz_error(changed), "not where its locator says"));
  changed = bytes;
  changed[bytes.find("PK\6\6") + 24 + 8] ^= 4;
  EXPECT_TRUE(contains(npz_error(changed), "the directory of members is damaged"));
  changed = bytes;
  changed[bytes.find("PK\1\2") + 46 + 5 + 2] = 16;  // of 24 bytes
  EXPECT_NE(npz_error(changed), "");
}

TEST(Npz, UnpacksToWhatIsStated) {
  for (const int more : {-4, 4}) {
    NpzWriter writer;
    writer.add("a", more < 0 ? "(2,)" : "(4,)", {1, 2, 3}, true);
    std::string bytes = writer.archive();
    const auto size = static_cast<uint32_t>(static_cast<int>(writer.members[0].bytes.size()) + more);
    std::memcpy(bytes.data() + bytes.find("PK\1\2") + 24, &size, sizeof size);
    EXPECT_TRUE(contains(npz_error(bytes),
                         more < 0 ? "it unpacks to more bytes than stated" : "it unpacks to fewer bytes than stated"));
  }
}

TEST(Npz, AsSmallAsDeflateCan) {
  NpzWriter writer;
  writer.add("zeros", "(1000, 1000)", Values(1'000'000), true);
  EXPECT_EQ(npz_error(writer.archive()), "");
}

// Truncated at each byte, and with each byte changed: rejected, or unchanged content.
TEST(Npz, CutAndChanged) {
  const TempDirectory folder;
  const std::string path = (folder.path() / "x.npz").string();
  int refused = 0, read = 0;
  const auto attempt = [&](const std::string& bytes) {
    write_file(path, bytes);
    try {
      const NpzFile file(path);
      for (const NpzEntry& entry : file.entries()) file.read(entry);
      ++read;
    } catch (const Error& error) {
      ASSERT_EQ(error.fault(), Fault::data) << error.what();
      ++refused;
    }
  };
  for (const bool deflated : {false, true}) {
    const std::string whole = two_arrays(deflated).archive();
    for (size_t size = 0; size < whole.size(); ++size) attempt(whole.substr(0, size));
    EXPECT_EQ(read, 0);
    RandomStream random(7, deflated);
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 + random.below(255)));
      attempt(bytes);
    }
    EXPECT_GT(refused, 3 * read);
    read = 0;
  }
}

}  // namespace
}  // namespace dtrain
