// SPDX-License-Identifier: Apache-2.0
/// The flags of `orrery serve` that put images into prompts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "serving/requests/generate.h"
#include "workload/zoo/image_tokens.h"

namespace orrery::cli {

/// A size of images and its share of them.
struct SizeShare {
  zoo::ImageSize size;
  double share = 1;
};
/// Reads sizes as "1280x720" or, with shares, "256x256:0.7,1280x720:0.3"; or as vLLM's benchmark
/// has them, height first, then frames: "{(256, 256, 1): 0.7, (720, 1280, 1): 0.3}". Shares of 0
/// are left out. Errors: anything else, sides outside 1 .. 65,536, more than a frame, no size left.
tl::expected<std::vector<SizeShare>, std::string> parse_image_sizes(std::string_view text);

class ImageFlags {
 public:
  void declare(Options& options);
  bool given() const { return images_ || sizes_; }
  /// Puts the images into the generator, as the model's processor counts them.
  void add(const zoo::Model& model, requests::Generator& generator, Error& mistakes) const;
  /// Returns a sentence on each size.
  std::vector<std::string> notes(const zoo::Model& model) const;
  /// Refuses the flags: they contradict `reason`.
  void refuse(const std::string& reason, Error& mistakes) const;

 private:
  std::optional<std::string> images_;
  std::optional<std::string> sizes_;
};

}  // namespace orrery::cli
