// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::chakra {

/// The bytes of a file, a window of them in memory at a time. Used for file after file, so that the
/// window is allocated once.
class ByteWindow {
 public:
  /// Files up to this size stand in the window as a whole.
  static constexpr std::size_t kWindow = std::size_t{4} << 20;

  ByteWindow() = default;
  ByteWindow(const ByteWindow&) = delete;
  ByteWindow& operator=(const ByteWindow&) = delete;
  ~ByteWindow() { close(); }

  /// Starts with a regular file of `size` bytes. Mistakes: missing, unreadable.
  Result<void> open(const std::string& path, std::uint64_t size);
  /// Starts with bytes in memory, which must outlive their use.
  void open(std::string_view bytes);

  /// Returns whether view() is all there is from position() on.
  bool whole() const { return file_ < 0; }
  /// Returns the bytes from position() on that stand in the window.
  std::string_view view() const { return unread_; }
  std::uint64_t position() const { return position_; }
  /// Returns the bytes from position() to the end of the file.
  std::uint64_t left() const { return size_ - position_; }
  /// Brings `bytes` of them into the window. False when the file ends before.
  bool want(std::size_t bytes);
  /// Requires bytes <= view().size().
  void skip(std::size_t bytes) {
    unread_.remove_prefix(bytes);
    position_ += bytes;
  }

 private:
  void close();
  bool fill();

  std::string buffer_;
  std::string_view unread_;
  std::uint64_t position_ = 0;
  std::uint64_t size_ = 0;
  int file_ = -1;  ///< -1 once everything is in the window
};

}  // namespace orrery::chakra
