// Tar archives, read in place: where each file that an archive holds lies within the archive.
//   a member = a header of 512 bytes | its bytes | zeros up to the next multiple of 512; two headers of zeros at the
//   end
// (POSIX.1-1988 "ustar", POSIX.1-2001 "pax" and GNU's long names)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libdtrain/io/input_file.h"

namespace dtrain::data {

struct TarMember {
  std::string name{};
  uint64_t offset = 0;  // of its bytes in the file
  uint64_t size = 0;
};

// The regular files of the archive that takes `size` bytes of `file` from `begin` on, in the archive's order; folders
// are left out. `name` names it in errors. Throws Error(Fault::data) with the offset of the member where the archive is
// damaged, ends early, is packed, or holds a link or a device.
std::vector<TarMember> tar_members(const InputFile& file, uint64_t begin, uint64_t size, const std::string& name);
// Those of the whole file.
std::vector<TarMember> tar_members(const InputFile& file);

}  // namespace dtrain::data
