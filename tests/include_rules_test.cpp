// Checks of the source tree: allowed includes, contents of public headers, use of the environment and of printing,
// macros, and limits on the length of files and functions.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

struct SourceFile {
  std::string path;  // from the root of the repository, e.g. "libdtrain/ops/conv2d.cpp"
  std::vector<std::string> lines;

  bool is_header() const { return path.ends_with(".h"); }  // a .cuh holds kernels, not an interface
  std::string home() const;
  // Paths between `open` and `close` in include directives.
  std::vector<std::string> includes(char open, char close) const {
    std::vector<std::string> names;
    for (const std::string& line : lines) {
      const size_t begin = line.find(open);
      if (line.starts_with("#include") && begin != std::string::npos)
        names.push_back(line.substr(begin + 1, line.find(close, begin + 1) - begin - 1));
    }
    return names;
  }
};

std::vector<SourceFile> read_sources(const std::vector<std::string>& folders) {
  const fs::path root = source_dir();
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      static const std::regex kSource(R"(.*\.(h|cpp|cu|cuh))");
      if (!std::regex_match(entry.path().string(), kSource)) continue;
      SourceFile file{fs::relative(entry.path(), root).string(), {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  }
  return files;
}

constexpr const char* kPublic = "include/dtrain/";

// Where a header would be if it were private, beside its implementation: "libdtrain/ops/pool.h" for the include name
// "dtrain/ops/pool.h", "data/png.h" for "dtrain/data/png.h".
std::string home_of(const std::string& name) {
  if (!name.starts_with("dtrain/")) return name;
  const std::string rest = name.substr(7);
  return rest.starts_with("data/") || rest.starts_with("models/") ? rest : "libdtrain/" + rest;
}

std::string SourceFile::home() const { return path.starts_with(kPublic) ? home_of(path.substr(8)) : path; }

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes)
    if (text.starts_with(prefix)) return true;
  return false;
}

// A folder may include its own files and those of `below`; its sources, but not its headers, also those of `behind`.
struct Level {
  std::string folder;
  std::vector<std::string> below, behind;
};

const std::vector<Level> kLevels = {
    {"libdtrain/core/", {}, {"libdtrain/cpu/", "libdtrain/cuda/"}},  // a context owns its device's library handles
    {"libdtrain/cpu/kernels/isa/", {"libdtrain/core/"}, {}},
    {"libdtrain/cpu/kernels/", {"libdtrain/core/", "libdtrain/cpu/kernels/isa/"}, {}},
    {"libdtrain/cpu/threads/", {"libdtrain/core/", "libdtrain/cpu/elements.h"}, {}},
    {"libdtrain/cpu/onednn/", {"libdtrain/core/", "libdtrain/cpu/threads/"}, {}},
    {"libdtrain/cpu/gemm/",
     {"libdtrain/core/", "libdtrain/cpu/elements.h", "libdtrain/cpu/kernels/", "libdtrain/cpu/threads/"},
     {}},
    {"libdtrain/cpu/conv/",
     {"libdtrain/core/", "libdtrain/cpu/elements.h", "libdtrain/cpu/kernels/", "libdtrain/cpu/threads/",
      "libdtrain/cpu/onednn/", "libdtrain/cpu/gemm/"},
     {}},
    {"libdtrain/cpu/", {"libdtrain/core/", "libdtrain/cpu/"}, {}},
    {"libdtrain/cuda/", {"libdtrain/core/"}, {"libdtrain/io/"}},  // what was measured once is kept in a file
    {"libdtrain/io/remote/", {"libdtrain/core/", "libdtrain/io/"}, {"libdtrain/version.h"}},  // user agent
    // Errors name the version; InputFile opens remote files.
    {"libdtrain/io/", {"libdtrain/core/"}, {"libdtrain/version.h", "libdtrain/io/remote/"}},
    {"libdtrain/distributed/nccl_", {"libdtrain/core/", "libdtrain/cuda/"}, {}},  // no public header among them
    {"libdtrain/distributed/", {"libdtrain/core/"}, {"libdtrain/cuda/"}},
    // All-reduce of gradients, and parameter copies in the compute type.
    {"libdtrain/autograd/", {"libdtrain/core/"}, {"libdtrain/ops/pointwise.h", "libdtrain/ops/compute_copy.h"}},
    // Synchronised batch norm.
    {"libdtrain/ops/",
     {"libdtrain/core/", "libdtrain/autograd/"},
     {"libdtrain/cpu/", "libdtrain/cuda/", "libdtrain/distributed/communicator.h"}},
    {"libdtrain/train/",
     {"libdtrain/core/", "libdtrain/autograd/", "libdtrain/ops/", "libdtrain/io/", "libdtrain/distributed/"},
     {}},
    {"libdtrain/run/",
     {"libdtrain/core/", "libdtrain/autograd/", "libdtrain/ops/", "libdtrain/io/", "libdtrain/distributed/",
      "libdtrain/train/"},
     {}},
    {"libdtrain/testing/", {"libdtrain/core/", "libdtrain/autograd/"}, {}},
    {"libdtrain/dtrain.h", {"libdtrain/"}, {}},
    {"libdtrain/deprecated.h", {"libdtrain/"}, {}},
    {"libdtrain/", {"libdtrain/core/", "libdtrain/autograd/", "libdtrain/ops/"}, {}},  // layers
    {"models/", {"libdtrain/", "models/"}, {}},
    {"data/coco/", {"libdtrain/core/", "libdtrain/io/"}, {}},
    {"data/annotations/", {"libdtrain/core/", "libdtrain/io/", "data/"}, {}},
    {"data/", {"libdtrain/core/", "libdtrain/io/", "data/coco/"}, {}},
    {"apps/cli/options/", {"apps/cli/", "libdtrain/", "data/"}, {}},
    {"apps/cli/", {"libdtrain/", "models/", "data/"}, {}},
    {"apps/observers/", {"apps/cli/", "libdtrain/"}, {}},
    {"apps/detection/", {"apps/cli/", "libdtrain/", "models/", "data/"}, {}},
    {"apps/ssd/", {"apps/cli/", "apps/detection/", "libdtrain/", "models/", "data/"}, {}},
    {"apps/mask_rcnn/", {"apps/cli/", "apps/observers/", "apps/detection/", "libdtrain/", "models/", "data/"}, {}},
    {"apps/cnn_benchmarks/",
     {"apps/cli/", "apps/observers/", "apps/detection/", "apps/ssd/", "libdtrain/", "models/", "data/"},
     {}},
    // Front ends run other programs' command lines.
    {"apps/train_imagenet/", {"apps/cli/", "apps/observers/", "libdtrain/"}, {"apps/cnn_benchmarks/program.h"}},
    {"apps/imagenet_main/", {"apps/cli/", "apps/observers/", "libdtrain/"}, {"apps/cnn_benchmarks/program.h"}},
    {"apps/serve/",
     {"apps/cli/", "apps/detection/", "libdtrain/", "models/", "data/"},
     {"apps/mask_rcnn/predictor.h", "apps/ssd/predictor.h"}},
    {"apps/convert/", {"apps/cli/", "apps/mask_rcnn/exchange.h", "libdtrain/", "models/"}, {}},
    // Draws objects.
    {"apps/dataset/",
     {"apps/cli/", "libdtrain/", "data/"},
     {"apps/mask_rcnn/canvas.h", "apps/mask_rcnn/draw_objects.h", "apps/mask_rcnn/text.h"}},
    {"apps/", {"apps/cli/", "apps/observers/", "libdtrain/", "models/", "data/"}, {}},
};

TEST(Includes, FollowTheLevels) {
  int checked = 0;
  for (const SourceFile& file : read_sources({"include", "libdtrain", "models", "data", "apps"})) {
    const std::string home = file.home();
    const auto level = std::find_if(kLevels.begin(), kLevels.end(),
                                    [&](const Level& candidate) { return home.starts_with(candidate.folder); });
    ASSERT_NE(level, kLevels.end()) << file.path << " is in a folder that has no level";
    for (const std::string& included : file.includes('"', '"')) {
      const std::string name = home_of(included);
      const bool allowed = folder_of(name) == folder_of(home) || starts_with_any(name, level->below) ||
                           (!file.is_header() && starts_with_any(name, level->behind));
      EXPECT_TRUE(allowed) << file.path << " includes " << included << ", which its folder may not know";
      ++checked;
    }
  }
  EXPECT_GT(checked, 50);
}

// Everything else compiles for aarch64. There `data/` gets its intrinsics, up to AVX2's, from SIMDe.
TEST(Includes, FewFilesAreForX86) {
  static const std::regex kX86(R"(\b_(mm\d*|tile)_|__builtin_cpu_|__get_cpuid|arch_prctl|intrin\.h>)");
  const std::vector<std::string> excused = {
      "apps/cli/processor_check.cpp",
      "apps/info/cpu_features.cpp",
      "libdtrain/core/cpu_isa.cpp",
      "libdtrain/core/context.cpp",
      "libdtrain/cpu/gemm/non_temporal.h",
      "libdtrain/cpu/kernels/isa/",
      "libdtrain/io/crc32c.cpp",
      "data/crop_and_resize.cpp",
      "data/jpeg_bits.cpp",
      "data/jpeg_idct.cpp",
      "data/jpeg_rows.cpp",
      "data/resize.cpp",
  };
  int found = 0;
  for (const SourceFile& file : read_sources({"libdtrain", "models", "data", "apps", "benchmarks"})) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      if (!std::regex_search(code, kX86)) continue;
      EXPECT_TRUE(starts_with_any(file.path, excused)) << file.path << ":" << i + 1 << ": " << file.lines[i];
      ++found;
    }
  }
  EXPECT_GT(found, 50);
}

// Standard headers have no extension and no folder, the system's are in sys/; vendors' have one or the other. As a
// public header includes nothing else but public headers of ours, no vendor's header is reachable from it.
TEST(Includes, PublicHeadersReachOnlyTheStandardLibrary) {
  int checked = 0;
  for (const SourceFile& file : read_sources({"include"})) {
    EXPECT_TRUE(file.is_header() && file.path.starts_with(kPublic)) << file.path << " is no public header";
    EXPECT_TRUE(!file.lines.empty() && file.lines[0].starts_with("// ")) << file.path << " does not state its purpose";
    for (const std::string& name : file.includes('<', '>'))
      EXPECT_TRUE(name.starts_with("sys/") || name.find_first_of("./") == std::string::npos)
          << file.path << " includes <" << name << ">";
    for (const std::string& name : file.includes('"', '"'))
      EXPECT_TRUE(name.starts_with("dtrain/")) << file.path << " includes the private header " << name;
    for (const std::string& line : file.lines)
      EXPECT_FALSE(line.starts_with("decltype(cpu::")) << file.path << " declares a kernel: " << line;
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

// The umbrella header includes every op.
TEST(Includes, DtrainHasEveryOp) {
  const std::vector<SourceFile> files = read_sources({"include"});
  const auto all = std::find_if(files.begin(), files.end(),
                                [](const SourceFile& file) { return file.path == "include/dtrain/dtrain.h"; });
  ASSERT_NE(all, files.end());
  const std::vector<std::string> names = all->includes('"', '"');
  static const std::regex kOp(R"((Var|Classification) \w+\(Tape&.*)");
  int ops = 0;
  for (const SourceFile& file : files) {
    if (!file.path.starts_with("include/dtrain/ops/")) continue;
    if (std::none_of(file.lines.begin(), file.lines.end(),
                     [](const std::string& line) { return std::regex_match(line, kOp); }))
      continue;
    EXPECT_EQ(std::count(names.begin(), names.end(), file.path.substr(8)), 1) << "dtrain/dtrain.h lacks " << file.path;
    ++ops;
  }
  EXPECT_GT(ops, 5);
}

// Libraries return options and reports to the caller: the environment and printing belong to apps/.
TEST(Library, NeitherReadsTheEnvironmentNorPrintsNorExits) {
  static const std::regex kForbidden(
      R"(\b((secure_)?getenv|(un)?setenv|putenv|clearenv|environ|c(out|err|log)|v?f?printf|f?put(s|c|char)|perror)\b)"
      R"(|\bfmt::print\b|\bstd(out|err)\b|\bSTD(OUT|ERR)_FILENO\b)"
      R"(|(\bstd|[^\w>])::(exit|abort|terminate|raise|kill)\(|\b(_exit|_Exit|quick_exit)\()");
  const std::vector<std::string> excused = {
      "libdtrain/distributed/nccl_comm.cpp",  // NCCL's algorithm can only be set by a variable
      "libdtrain/distributed/open_mpi.cpp",   // Open MPI's fault tolerance, likewise
      "libdtrain/distributed/group.cpp",      // exit of a rank without peers, see GroupOptions::fail
      "libdtrain/run/faults.cpp",             // fault injection
  };
  int checked = 0;
  for (const SourceFile& file : read_sources({"include", "libdtrain", "data", "models"})) {
    if (starts_with_any(file.path, excused)) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      EXPECT_FALSE(std::regex_search(code, kForbidden)) << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

// External JSON is parsed by parse_json, which bounds its cost. Two readers use a SAX parser with their own limits.
TEST(Library, JsonIsParsedInOnePlace) {
  static const std::regex kParser(
      R"(\b(parse|accept|sax_parse|from_(cbor|bson|msgpack|ubjson|bjdata))\(|>> *\w*[jJ]son\b)");
  const std::vector<std::string> excused = {"libdtrain/io/json_limits.", "libdtrain/io/safetensors_header.cpp",
                                            "data/coco/read_records.cpp",
                                            // These parse TOML and protocol buffers, and write JSON.
                                            "apps/cli/config_file.cpp", "apps/dataset/inspect.cpp"};
  int found = 0;
  for (const SourceFile& file : read_sources({"include", "libdtrain", "models", "data", "apps", "benchmarks"})) {
    const std::vector<std::string> names = file.includes('<', '>');
    const bool is_reader = file.path == "libdtrain/io/json_limits.h";  // the parser itself
    if (!is_reader && std::ranges::find(names, "nlohmann/json.hpp") == names.end()) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      if (!std::regex_search(code, kParser)) continue;
      EXPECT_TRUE(starts_with_any(file.path, excused))
          << file.path << ":" << i + 1 << ": " << code << ": use parse_json of libdtrain/io/json_limits.h";
      ++found;
    }
  }
  EXPECT_GE(found, 4);
}

// Other macros would escape namespaces and type checks.
TEST(Names, MacrosAreFew) {
  static const std::regex kMacro(R"(\s*#\s*define\s+(?!(DT_CHECK|DT_DISPATCH|DT_HD|DT_CUDA)\b).*)");
  for (const SourceFile& file : read_sources({"include", "libdtrain", "models", "data", "apps", "benchmarks"}))
    for (size_t i = 0; i < file.lines.size(); ++i)
      EXPECT_FALSE(std::regex_match(file.lines[i], kMacro)) << file.path << ":" << i + 1 << ": " << file.lines[i];
}

// A name means one type of the library, in whatever namespace.
TEST(Names, PublicTypesAreUnique) {
  static const std::regex kType(R"((struct|class|enum class|enum) (\w+)[^;]*|using (\w+) =.*)");
  std::map<std::string, std::string> headers;
  for (const SourceFile& file : read_sources({"include"}))
    for (const std::string& line : file.lines) {
      std::smatch found;
      if (!std::regex_match(line, found, kType)) continue;
      const auto [first, added] = headers.emplace(found[2].matched ? found[2] : found[3], file.path);
      EXPECT_TRUE(added) << file.path << " and " << first->second << " have types of the name " << first->first;
    }
  EXPECT_GT(headers.size(), 200u);
}

// A member without an initializer would be undefined in `Options options;`, and required by designated initializers.
// PoolOptions is the exception: its kernel and stride have no sensible default, so that code without them must not
// compile.
TEST(Names, OptionsHaveDefaults) {
  static const std::regex kBegin(R"(struct \w*(Options|Settings|Request|Cadence) \{)");
  static const std::regex kMember(R"(  \w[\w:<>, *]* \w+(, \w+)*;.*)"), kNoMember(R"(  (using|return|enum|struct) .*)");
  int options = 0;
  for (const SourceFile& file : read_sources({"include"}))
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (!std::regex_match(file.lines[i], kBegin) || file.lines[i] == "struct PoolOptions {") continue;
      ++options;
      for (size_t j = i + 1; j < file.lines.size() && file.lines[j] != "};"; ++j)
        EXPECT_FALSE(std::regex_match(file.lines[j], kMember) && !std::regex_match(file.lines[j], kNoMember))
            << file.path << ":" << j + 1 << ": " << file.lines[j] << ": an option without a default";
    }
  EXPECT_GT(options, 50);
}

// A comment with these words exempts a file from the limits.
constexpr const char* kExcuse = "Longer than usual: ";

bool excused(const SourceFile& file) {
  return std::any_of(file.lines.begin(), file.lines.end(),
                     [](const std::string& line) { return line.find(kExcuse) != std::string::npos; });
}

TEST(Size, FilesAreShort) {
  for (const SourceFile& file :
       read_sources({"include", "libdtrain", "models", "data", "apps", "tests", "benchmarks"})) {
    // A .cuh holds kernels, not an interface.
    const size_t limit = file.path.ends_with(".h") ? 150 : file.path.starts_with("apps/") ? 200 : 400;
    EXPECT_TRUE(file.lines.size() <= limit || excused(file))
        << file.path << ": " << file.lines.size() << " lines, " << limit << " are allowed";
  }
}

// Code shared by training programs belongs to the library and apps/cli.
TEST(Size, AProgramIsThin) {
  size_t lines = 0;
  for (const SourceFile& file : read_sources({"apps/cnn_benchmarks"}))
    if (file.path != "apps/cnn_benchmarks/unread_flags.cpp") lines += file.lines.size();  // a table for users
  EXPECT_GT(lines, 500u);
  EXPECT_LT(lines, 2000u);
}

// Relies on clang-format: a function body opens on a line that ends in "{", except types and namespaces, and closes
// with a brace in the column of the function's first line.
TEST(Size, FunctionsAreShort) {
  static const std::regex kNoFunction(R"(\s*(namespace|struct|class|enum|union|extern)\b.*)");
  for (const SourceFile& file : read_sources({"include", "libdtrain", "models", "data", "apps"})) {
    if (excused(file)) continue;
    for (size_t begin = 0; begin < file.lines.size(); ++begin) {
      const std::string& line = file.lines[begin];
      const size_t indent = line.find_first_not_of(' ');
      if (indent > 2 || !line.ends_with("{") || std::regex_match(line, kNoFunction)) continue;
      const std::string close = std::string(indent, ' ') + "}";
      size_t end = begin + 1;
      while (end < file.lines.size() && !file.lines[end].starts_with(close)) ++end;
      EXPECT_LE(end - begin - 1, 60u) << file.path << ":" << begin + 1 << ": a function of so many lines";
    }
  }
}

}  // namespace
}  // namespace dtrain
