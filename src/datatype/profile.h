// SPDX-License-Identifier: Apache-2.0
/// Says how long moving typed data takes, measured on one machine, and which way of sending it is
/// best.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::datatype {

/// A TimeTable holds seconds by total bytes and by bytes of a block, on a full grid.
class TimeTable {
 public:
  /// Adds a point of the grid, in any order.
  void add(std::int64_t bytes, std::int64_t block, double seconds);
  bool empty() const { return points_.empty(); }
  /// Returns whether every size has every block.
  bool is_full() const;

  /// Returns the time at a point: bilinear in bytes and in the logarithm of the block; beyond the
  /// largest size in proportion to bytes, at every other edge that of the edge. Requires is_full()
  /// and a point.
  double seconds(double bytes, double block) const;

 private:
  struct Point {
    std::int64_t bytes = 0;
    std::int64_t block = 0;
    double seconds = 0;
  };
  double on_row(std::size_t row, double block) const;
  std::size_t rows() const { return points_.size() / columns_; }

  std::vector<Point> points_;  ///< by bytes, then by block
  std::size_t columns_ = 1;
};

/// Says how typed data goes to another rank.
enum class Method : std::uint8_t {
  library,    ///< MPI_Send of the datatype
  packed,     ///< pack, send bytes, unpack
  pipelined,  ///< the same in chunks, which overlap
};
inline constexpr std::string_view kMethodNames[] = {"library", "packed", "pipelined"};

/// Bytes of a chunk of a pipelined message: half of a usual L2 cache, so that what is packed is
/// still there when it is sent.
inline constexpr std::int64_t kChunkBytes = 256 << 10;

/// Share of the library's time that another method must save to be chosen.
inline constexpr double kLeastGain = 0.1;

struct Profile {
  TimeTable pack;
  TimeTable unpack;
  TimeTable library;  ///< one way of a typed message
  TimeTable message;  ///< one way of plain bytes; block 0

  bool empty() const { return message.empty(); }

  /// Returns the predicted time of one message of b bytes in blocks of l bytes.
  ///
  ///   library    library(b, l)
  ///   packed     pack(b, l) + message(b) + unpack(b, l)
  ///   pipelined  n chunks of c = b / n bytes, n = ceil(b / kChunkBytes):
  ///              pack(c) + message(c) + unpack(c) + (n - 1) max(pack(c), message(c), unpack(c))
  ///
  /// Ignores: two ranks that pack at once share memory bandwidth.
  double seconds(Method method, std::int64_t bytes, std::int64_t block) const;
  /// Returns the fastest by that; library where the profile is empty, and where no other promises
  /// kLeastGain: a table's points are measured on one pattern, half of the places taken. Pipelining
  /// needs both sides, so `both_sides` says whether the receiver chooses by the same profile.
  Method best(std::int64_t bytes, std::int64_t block, bool both_sides) const;
};

/// A profile from its file, or what is wrong with each line ("3: ..."), never both.
struct ReadProfile {
  Profile profile;
  std::vector<std::string> mistakes;
};

/// Reads comma-separated rows `kind,bytes,block,seconds` under that header; kind is pack, unpack,
/// library or message. All four tables must be there and full.
ReadProfile read_profile(std::string_view text);
/// Reads such a file; its mistakes begin with its name. One that cannot be opened is a mistake.
ReadProfile load_profile(const std::string& file);

}  // namespace orrery::datatype
