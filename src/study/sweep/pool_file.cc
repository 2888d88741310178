// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "study/sweep/pool.h"

namespace orrery::sweep {
namespace {

constexpr char kDone = 'D';
constexpr mode_t kMode = 0666;

off_t offset(std::size_t byte) {
  return static_cast<off_t>(byte);
}

}  // namespace

Result<PoolFile> PoolFile::open(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (descriptor < 0) {
    return fail(Error(Mistake{file, {}, {}, std::strerror(errno)}));
  }
  return PoolFile(file, descriptor);
}

PoolFile::PoolFile(PoolFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

PoolFile::~PoolFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

/// A lock of the open file, not of the process: two threads that opened it exclude one another.
bool PoolFile::lock(std::size_t byte, short how, bool wait) const {
  struct flock request {};
  request.l_type = how;
  request.l_whence = SEEK_SET;
  request.l_start = offset(byte);
  request.l_len = 1;
  int result = 0;
  do {
    result = ::fcntl(descriptor_, wait ? F_OFD_SETLKW : F_OFD_SETLK, &request);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

PoolFile::Claim PoolFile::claim(std::size_t point, bool wait) {
  const auto is_done = [&] {
    char state = 0;
    return ::pread(descriptor_, &state, 1, offset(point)) == 1 && state == kDone;
  };
  if (is_done()) {
    return Claim::done;
  }
  if (!lock(point, F_WRLCK, wait)) {
    return Claim::held;
  }
  if (is_done()) {  // between the first look and the lock
    lock(point, F_UNLCK, false);
    return Claim::done;
  }
  return Claim::taken;
}

void PoolFile::release(std::size_t point, bool done) {
  if (done) {
    (void)!::pwrite(descriptor_, &kDone, 1, offset(point));  // else the point is run once more
  }
  lock(point, F_UNLCK, false);
}

void PoolFile::join(std::size_t points) {
  lock(points, F_RDLCK, true);
}

void PoolFile::leave(std::size_t points) {
  lock(points, F_UNLCK, false);
}

bool PoolFile::merge(std::size_t points) {
  return lock(points, F_WRLCK, false);
}

}  // namespace orrery::sweep
