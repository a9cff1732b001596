// A plain ustar reader over a zstd stream, and the folder that stands for an unpacked archive.
#include "tar_zst.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "lamella/core/check.h"

#if LAMELLA_HAVE_ZSTD
#include <zstd.h>
#endif

namespace lamella::tools {

namespace {
namespace fs = std::filesystem;
constexpr size_t kBlock = 512;
constexpr uint64_t kMaxEntry = uint64_t{1} << 30;  // a larger file in an archive is refused, not allocated
constexpr size_t kMaxStep = size_t{1}
                            << 20;  // memory grows with what has arrived, not with what is announced

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  LAMELLA_CHECK(in, Usage, "reference: cannot open \"{}\"", path.string());
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return std::move(bytes).str();
}

#if LAMELLA_HAVE_ZSTD
/// Decompressed bytes of a stream, in order.
class ZstdStream {
 public:
  explicit ZstdStream(std::istream& in) : in_(in), compressed_(ZSTD_DStreamInSize()) {}
  /// Fills `out` as far as the stream goes.
  size_t read(char* out, size_t size) {
    ZSTD_outBuffer target{out, size, 0};
    while (target.pos < size) {
      if (source_.pos == source_.size) refill();
      const size_t before = target.pos, taken = source_.pos;
      const size_t code = ZSTD_decompressStream(stream_.get(), &target, &source_);
      LAMELLA_CHECK(!ZSTD_isError(code), Value, "zstd: {}", ZSTD_getErrorName(code));
      if (target.pos == before && source_.pos == taken && ended_) break;
    }
    return target.pos;
  }

 private:
  /// At the end nothing, which the decoder is given for as long as it holds something: of a frame that was
  /// flushed and not ended up to a block.
  void refill() {
    in_.read(compressed_.data(), std::streamsize(compressed_.size()));
    source_ = {compressed_.data(), size_t(in_.gcount()), 0};
    ended_ = source_.size == 0;
  }
  struct Free {
    void operator()(ZSTD_DStream* s) const { ZSTD_freeDStream(s); }
  };
  std::istream& in_;
  std::vector<char> compressed_;
  ZSTD_inBuffer source_{nullptr, 0, 0};
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  bool ended_ = false;
};

std::string text_field(const char* field, size_t size) {
  return std::string(field, std::find(field, field + size, '\0'));
}

/// An octal number, padded by spaces or NULs.
uint64_t octal_field(const char* field, size_t size, const char* what) {
  uint64_t value = 0;
  size_t i = 0, digits = 0;
  while (i < size && field[i] == ' ') ++i;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; ++i, ++digits)
    value = value * 8 + uint64_t(field[i] - '0');
  const bool ended = std::all_of(field + i, field + size, [](char c) { return c == ' ' || c == '\0'; });
  LAMELLA_CHECK(ended && digits && digits < 21, Value, "tar: the {} of an entry is no octal number", what);
  return value;
}

struct TarHeader {
  std::array<char, kBlock> block;
  bool end() const {
    return std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; });
  }
  std::string name() const { return text_field(block.data(), 100); }
  uint64_t size() const { return octal_field(block.data() + 124, 12, "size"); }
  bool regular() const { return block[156] == '0' || block[156] == '\0'; }
  void check_sum() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? uint8_t(' ') : uint8_t(block[i]);
    LAMELLA_CHECK(sum == octal_field(block.data() + 148, 8, "checksum"), Value,
                  "tar: an entry's checksum is wrong");
  }
};

std::string read_entry(ZstdStream& in, uint64_t size, const std::string& name) {
  std::string bytes;
  while (bytes.size() < size) {
    const size_t old = bytes.size(), step = size_t(std::min<uint64_t>(size - old, kMaxStep));
    bytes.resize(old + step);
    LAMELLA_CHECK(in.read(bytes.data() + old, step) == step, Value, "tar: the archive ends inside \"{}\"",
                  name);
  }
  std::array<char, kBlock> padding;
  const size_t rest = (kBlock - size % kBlock) % kBlock;
  LAMELLA_CHECK(in.read(padding.data(), rest) == rest, Value, "tar: the archive ends inside \"{}\"", name);
  return bytes;
}

}  // namespace

void visit_archive(std::istream& stream, const std::function<bool(const std::string&)>& wanted,
                   const PackVisitor& visit) {
  ZstdStream in(stream);
  TarHeader header;
  while (true) {
    const size_t got = in.read(header.block.data(), kBlock);
    LAMELLA_CHECK(got == kBlock, Value, "tar: the archive ends without its closing blocks");
    if (header.end()) {
      while (in.read(header.block.data(), kBlock)) continue;  // to the stream's own checksum
      return;
    }
    header.check_sum();
    const uint64_t size = header.size();
    const std::string name = fs::path(header.name()).filename().string();
    LAMELLA_CHECK(size <= kMaxEntry, Value, "tar: \"{}\" has {} bytes, expected at most {}", name, size,
                  kMaxEntry);
    std::string bytes = read_entry(in, size, name);
    if (header.regular() && wanted(name)) visit(name, std::move(bytes));
  }
}
#else
}  // namespace

void visit_archive(std::istream&, const std::function<bool(const std::string&)>&, const PackVisitor&) {
  fail(ErrorCode::Usage, "reference: this program was built without zstd; unpack the archive first");
}
#endif

void visit_pack(const std::string& path, const std::function<bool(const std::string&)>& wanted,
                const PackVisitor& visit) {
  std::error_code ignored;
  LAMELLA_CHECK(fs::exists(path, ignored), Usage, "reference: there is no \"{}\"", path);
  if (path.ends_with(".tar.zst")) {
    std::ifstream in(path, std::ios::binary);
    LAMELLA_CHECK(in, Usage, "reference: cannot open \"{}\"", path);
    return visit_archive(in, wanted, visit);
  }
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const fs::directory_entry& e : fs::directory_iterator(path))
      if (e.is_regular_file() && wanted(e.path().filename().string())) files.push_back(e.path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  for (const fs::path& file : files) visit(file.filename().string(), read_file(file));
}

}  // namespace lamella::tools
