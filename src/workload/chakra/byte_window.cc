// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/byte_window.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace orrery::chakra {
namespace {

/// read() into `to`, repeated until it is full or the file ends. Negative on an error.
ssize_t read_fully(int file, char* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(file, to + done, bytes - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return got;
    }
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

void ByteWindow::close() {
  if (file_ >= 0) {
    ::close(file_);
    file_ = -1;
  }
}

Result<void> ByteWindow::open(const std::string& path, std::uint64_t size) {
  close();
  unread_ = {};
  position_ = 0;
  size_ = size;
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) {
    const std::string why = errno == ENOENT ? "no such file" : std::strerror(errno);
    return fail(Error(Mistake{path, {}, {}, why}));
  }
  if (!fill()) {
    return fail(Error(Mistake{path, {}, {}, "cannot be read"}));
  }
  return {};
}

void ByteWindow::open(std::string_view bytes) {
  close();
  unread_ = bytes;
  position_ = 0;
  size_ = bytes.size();
}

/// Moves what is unread to the front and reads behind it. False when reading fails.
bool ByteWindow::fill() {
  const std::size_t kept = unread_.size();
  const std::uint64_t rest = size_ - position_ - kept;
  const std::size_t more = static_cast<std::size_t>(std::min<std::uint64_t>(rest, kWindow));
  if (kept > 0) {
    std::memmove(buffer_.data(), unread_.data(), kept);
  }
  if (buffer_.size() < kept + more) {
    buffer_.resize(kept + more);
  }
  const ssize_t got = read_fully(file_, buffer_.data() + kept, more);
  if (got < 0) {
    return false;
  }
  unread_ = std::string_view(buffer_.data(), kept + static_cast<std::size_t>(got));
  if (more == rest || static_cast<std::size_t>(got) < more) {
    size_ = position_ + unread_.size();  // the file may have become shorter
    close();
  }
  return true;
}

bool ByteWindow::want(std::size_t bytes) {
  while (unread_.size() < bytes && !whole()) {
    if (!fill()) {
      size_ = position_ + unread_.size();
      close();
    }
  }
  return unread_.size() >= bytes;
}

}  // namespace orrery::chakra
