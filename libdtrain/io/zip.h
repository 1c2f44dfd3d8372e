// ZIP archives read strictly: stored and deflated members, with 64-bit sizes where they need them.
//   member 1 | member 2 | ... | directory | (end record of ZIP64, its locator) | end record
// (PKWARE's APPNOTE.TXT, 4.3). What a member's own header says must be what the directory says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libdtrain/io/input_file.h"

namespace dtrain {

struct ZipMember {
  std::string name{};
  bool deflated = false;
  uint32_t crc32 = 0;               // of the unpacked bytes
  uint64_t packed = 0, size = 0;    // in bytes
  uint64_t header = 0, offset = 0;  // in the file: of the member, and of its packed bytes
};

// An open archive whose directory has been checked against the file: names are unlike, without control characters;
// members lie one after the other before the directory; none claims to unpack to more than deflate can hold. Takes
// memory in proportion to the directory that is there. Encrypted members, other methods and archives of several disks
// are refused. Failures throw Error(fault) naming the file and the member.
class ZipFile {
 public:
  explicit ZipFile(const std::string& path, Fault fault = Fault::data);

  const std::string& path() const { return file_.path(); }
  const std::vector<ZipMember>& members() const { return members_; }  // in the order of the file
  // Throws Error(fault) "path: member NAME: what".
  [[noreturn]] void fail(const ZipMember& member, const std::string& what) const;

  // The unpacked bytes of a member, from its beginning. The one that reads the last of them compares the checksum.
  class Reader {
   public:
    Reader(const ZipFile& zip, const ZipMember& member);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    // Exactly `size` bytes; throws Error(fault) where there are fewer, or they are not what was packed.
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
