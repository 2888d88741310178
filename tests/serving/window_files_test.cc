// SPDX-License-Identifier: Apache-2.0
/// The sliding window for real: blocks in files, a thread that loads them while fewer than w are
/// there, one that sums and frees them; resident memory as the kernel counts it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orrery::serving {
namespace {

constexpr std::size_t kBlocks = 16;
constexpr std::size_t kBlockBytes = std::size_t{2} << 20U;

/// Anonymous pages of this process that are in memory.
std::size_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "RssAnon:") {
      std::size_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

/// A folder of files, block i full of bytes i + 1.
class Files {
 public:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "windowXXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::ofstream(path(block), std::ios::binary)
          << std::string(kBlockBytes, static_cast<char>(block + 1));
    }
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  ~Files() { std::filesystem::remove_all(folder_); }

  std::string path(std::size_t block) const { return folder_ + "/" + std::to_string(block); }

 private:
  std::string folder_;
};

/// Memory that goes back to the kernel when freed.
class Pages {
 public:
  explicit Pages(const std::string& path)
      : at_(static_cast<unsigned char*>(::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    const int file = ::open(path.c_str(), O_RDONLY);
    for (std::size_t read = 0; read < kBlockBytes;) {
      const auto more = ::read(file, at_ + read, kBlockBytes - read);
      EXPECT_GT(more, 0);
      read += static_cast<std::size_t>(std::max<ssize_t>(more, 1));
    }
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
  Pages(Pages&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  Pages& operator=(Pages&&) = delete;
  ~Pages() {
    if (at_ != nullptr) {
      ::munmap(at_, kBlockBytes);
    }
  }

  std::size_t sum() const { return std::accumulate(at_, at_ + kBlockBytes, std::size_t{0}); }

 private:
  unsigned char* at_;
};

struct Streamed {
  std::size_t sum = 0;
  std::size_t peak = 0;  ///< resident bytes above those before
};

Streamed stream(const Files& files, std::size_t window) {
  const std::size_t before = resident_bytes();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Pages> loaded;
  std::size_t held = 0;  // loaded, loading or computed with
  std::thread loader([&] {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return held < window; });
      ++held;
      lock.unlock();
      Pages pages(files.path(block));
      lock.lock();
      loaded.push_back(std::move(pages));
      changed.notify_all();
    }
  });
  Streamed result;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return loaded.size() > block; });
    Pages mine = std::move(loaded[block]);
    lock.unlock();
    result.sum += mine.sum();
    const std::size_t now = resident_bytes();
    result.peak = std::max(result.peak, now - std::min(now, before));
    { const Pages freed = std::move(mine); }
    lock.lock();
    --held;
    changed.notify_all();
  }
  loader.join();
  return result;
}

TEST(WindowOfFiles, ResidentMemoryIsTheWindow) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "shadow memory is resident as well";
#endif
  const Files files;
  // 2 MiB x (1 + 2 + ... + 16).
  constexpr std::size_t kSum = kBlockBytes * kBlocks * (kBlocks + 1) / 2;
  for (const std::size_t window : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    const Streamed streamed = stream(files, window);
    EXPECT_EQ(streamed.sum, kSum);
    // Stacks and what sanitizers keep take less than two blocks.
    EXPECT_LE(streamed.peak, (window + 2) * kBlockBytes) << window;
    EXPECT_GE(streamed.peak, kBlockBytes / 2) << window;
    std::printf("window %zu: %.1f MiB resident of %.0f\n", window,
                static_cast<double>(streamed.peak) / (1U << 20U),
                static_cast<double>(kBlocks * kBlockBytes) / (1U << 20U));
  }
}

}  // namespace
}  // namespace orrery::serving
