// Tar archives, read in place or in memory.
//   member = header of 512 bytes | data | zeros up to the next multiple of 512; two zero headers at the end
// (POSIX.1-1988 "ustar", POSIX.1-2001 "pax" and GNU's long names)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dtrain/io/input_file.h"

namespace dtrain::data {

struct TarMember {
  std::string name{};
  uint64_t offset = 0;  // byte offset of its data in the file
  uint64_t size = 0;
};

// Regular files, in order, of the archive in bytes [begin, begin + size) of `file`; skips folders. `name` identifies
// the archive in errors. Throws Error(Fault::data) with the member's offset for a damaged, truncated or compressed
// archive, a link and a device.
std::vector<TarMember> tar_members(const InputFile& file, uint64_t begin, uint64_t size, const std::string& name);
// The same for the whole file.
std::vector<TarMember> tar_members(const InputFile& file);

struct ReadableTar {
  std::vector<TarMember> members{};
  std::string fault{};  // the first damage, with which the members end; "" for a sound archive
  uint64_t links = 0;   // hard and symbolic links that are skipped
};
// The same, without links and devices, up to the first damage.
ReadableTar readable_tar_members(const InputFile& file);

// The same as tar_members() for an archive in memory.
std::vector<TarMember> tar_members(std::string_view archive, const std::string& name);

}  // namespace dtrain::data
