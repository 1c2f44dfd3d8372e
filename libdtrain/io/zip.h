// Strict reader of ZIP archives: stored and deflated members, ZIP64 sizes.
//   member 1 | member 2 | ... | central directory | (ZIP64 end record and locator) | end record
// (PKWARE's APPNOTE.TXT, 4.3). Local headers must agree with the central directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dtrain/io/input_file.h"

namespace dtrain {

struct ZipMember {
  std::string name{};
  bool deflated = false;
  uint32_t crc32 = 0;               // of the uncompressed bytes
  uint64_t packed = 0, size = 0;    // compressed and uncompressed bytes
  uint64_t header = 0, offset = 0;  // file offsets of the local header and of the compressed data
};

// Open archive with a validated central directory: unique names without control characters, contiguous members,
// plausible compression ratios. Memory is proportional to the actual directory. Refuses encrypted members, other
// methods and multi-disk archives. Failures throw Error(fault) naming file and member.
class ZipFile {
 public:
  explicit ZipFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return file_.path(); }
  const std::vector<ZipMember>& members() const { return members_; }  // in file order
  // Throws Error(fault) "path: member NAME: what".
  [[noreturn]] void fail(const ZipMember& member, const std::string& what) const;

  // Sequential reader of a member's uncompressed bytes. Verifies the checksum at the end.
  class Reader {
   public:
    Reader(const ZipFile& zip, const ZipMember& member);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    // Reads exactly `size` bytes; throws Error(fault) if there are fewer or the data is corrupt.
    void read(void* to, size_t size);
    uint64_t left() const;

   private:
    struct ZlibStream;
    void inflate(unsigned char* to, size_t size);
    void finish();

    const ZipFile& zip_;
    const ZipMember& member_;
    std::unique_ptr<ZlibStream> stream_;
  };

 private:
  struct Directory {
    uint64_t members = 0, offset = 0, size = 0;
  };
  [[noreturn]] void fail(const std::string& what) const;
  Directory find_directory() const;
  bool find_large_directory(uint64_t end_record, Directory& directory) const;
  void read_directory(const Directory& directory);
  ZipMember read_entry(const std::string& bytes, size_t& at) const;
  void read_large_sizes(ZipMember& member, const std::string& extra) const;
  void locate(ZipMember& member, uint64_t end) const;

  InputFile file_;
  Fault fault_;
  std::vector<ZipMember> members_;
};

}  // namespace dtrain
