// Format numbers of the files that dtrain writes and reads again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dtrain/core/error.h"

namespace dtrain {

struct FileFormat {
  const char* what;
  Fault fault;
  int oldest, newest;   // numbers that this version reads; it writes the newest
  const char* way_out;  // for files of other numbers

  bool reads(uint64_t number) const {
    return number >= static_cast<uint64_t>(oldest) && number <= static_cast<uint64_t>(newest);
  }
};

// All formats that refuse other numbers. A new number is added by raising `newest`; readers of the older ones stay for
// as long as docs/faults.md says. Caches (record indices, plan files of GPUs) are made again instead.
inline constexpr FileFormat kCheckpointFormat{"checkpoint", Fault::checkpoint, 1, 1,
                                              "resume with the version that wrote it, or train its model.safetensors "
                                              "in another train_dir by --weights or --load"};
inline constexpr FileFormat kObjectManifestFormat{"checkpoint in object storage", Fault::checkpoint, 1, 1,
                                                  "resume with the version that wrote it, or use another prefix"};
inline constexpr FileFormat kCalibrationFormat{"calibration", Fault::data, 1, 1,
                                               "make one by dtrain-classify calibrate"};
inline constexpr FileFormat kShardManifestFormat{
    "shard manifest", Fault::data, 1, 1,
    "delete it if the shards are complete, or convert the data set again by dtrain-data"};

// Thrown for files of another format number, which need not be damaged.
class FormatError : public Error {
 public:
  using Error::Error;
};

// Throws FormatError, with the way out, unless this version reads `number`. `writer`: the version that wrote the file,
// if it is known.
void require_readable(const FileFormat& format, uint64_t number, const std::string& path,
                      const std::string& writer = "");

// N of a first line "PREFIX N"; nullopt for other texts.
std::optional<uint64_t> format_number(std::string_view line, std::string_view prefix);

}  // namespace dtrain
