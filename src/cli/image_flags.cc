// SPDX-License-Identifier: Apache-2.0
#include "cli/image_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/lists.h"
#include "base/reader.h"
#include "base/split.h"
#include "cli/step_flags.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kMostImages = 1024;  // of a prompt
constexpr double kMostSide = 65'536;

/// Returns the numbers of a text, whatever stands between them.
std::vector<double> numbers_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789.";
  std::vector<double> numbers;
  for (std::size_t begin = text.find_first_of(kDigits); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    numbers.push_back(parse_number(text.substr(begin, end - begin)).value_or(-1));
    begin = text.find_first_of(kDigits, end);
  }
  return numbers;
}

/// Returns a side in pixels; 0: no whole number from 1 to kMostSide.
std::int64_t side_of(double number) {
  const bool is_side = number >= 1 && number <= kMostSide && number == std::floor(number);
  return is_side ? static_cast<std::int64_t>(number) : 0;
}

/// Width, height and share of "1280x720:0.5" or "1280x720".
std::optional<SizeShare> parse_size(std::string_view text) {
  if (text.find_first_not_of("0123456789.x: ") != std::string_view::npos ||
      text.find('x') == std::string_view::npos) {
    return std::nullopt;
  }
  const std::vector<double> numbers = numbers_of(text);
  const bool shared = text.find(':') != std::string_view::npos;
  if (numbers.size() != (shared ? 3 : 2)) {
    return std::nullopt;
  }
  return SizeShare{{side_of(numbers[0]), side_of(numbers[1])}, shared ? numbers[2] : 1};
}

/// Returns the sizes of vLLM's dictionary; nothing: it has a video, or is none.
std::optional<std::vector<SizeShare>> parse_buckets(std::string_view text) {
  const std::vector<double> numbers = numbers_of(text);
  constexpr std::size_t kOfBucket = 4;  // height, width, frames, share
  std::vector<SizeShare> sizes;
  if (text.find_first_not_of("0123456789.,:(){} ") != std::string_view::npos ||
      !text.ends_with('}') || numbers.size() % kOfBucket != 0) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < numbers.size(); i += kOfBucket) {
    if (numbers[i + 2] != 1 && numbers[i + 3] != 0) {
      return std::nullopt;
    }
    sizes.push_back({{side_of(numbers[i + 1]), side_of(numbers[i])}, numbers[i + 3]});
  }
  return sizes;
}

}  // namespace

tl::expected<std::vector<SizeShare>, std::string> parse_image_sizes(std::string_view text) {
  const auto wrong = [] {
    return tl::make_unexpected(
        std::string("sizes of images such as '1280x720' or '256x256:0.7,1280x720:0.3', sides from "
                    "1 to 65,536 (no videos: one frame)"));
  };
  std::vector<SizeShare> sizes;
  if (text.starts_with('{')) {
    const auto buckets = parse_buckets(text);
    if (!buckets) {
      return wrong();
    }
    sizes = *buckets;
  } else {
    for (const std::string_view part : split_at(text, ',')) {
      const auto size = parse_size(part);
      if (!size) {
        return wrong();
      }
      sizes.push_back(*size);
    }
  }
  std::erase_if(sizes, [](const SizeShare& one) { return one.share == 0; });
  const auto is_size = [](const SizeShare& one) {
    return one.size.width > 0 && one.size.height > 0 && one.share > 0;
  };
  if (sizes.empty() || !std::ranges::all_of(sizes, is_size)) {
    return wrong();
  }
  return sizes;
}

void ImageFlags::declare(Options& options) {
  options.value("--images-per-prompt", images_, "INT",
                "images behind the text of every prompt, of a model that sees; default 0");
  options.value("--image-size", sizes_, "LIST",
                "width x height in pixels, with shares where several: '256x256:0.7,1280x720:0.3'");
  options.alias("--random-mm-base-items-per-request", "--images-per-prompt");  // vLLM's benchmark
  options.alias("--random-mm-bucket-config", "--image-size");
  options.alias("--image-count", "--images-per-prompt");  // SGLang's
}

void ImageFlags::add(const zoo::Model& model, requests::Generator& generator,
                     Error& mistakes) const {
  if (!given()) {
    return;
  }
  const auto sizes = parse_image_sizes(sizes_.value_or("1x1"));
  if (!sizes) {
    mistakes.add(wrong_value("--image-size", *sizes_, sizes.error()));
  }
  if (images_ && parse_integer(*images_) == 0) {
    return;
  }
  generator.images = whole_number("--images-per-prompt", images_, 0, kMostImages, mistakes);
  if (!images_ || !sizes_) {
    mistakes.add(
        {images_ ? "--image-size" : "--images-per-prompt",
         {},
         {},
         fmt::format("missing: {} is given", images_ ? "--images-per-prompt" : "--image-size")});
    return;
  }
  if (!model.vision) {
    mistakes.add({"--images-per-prompt",
                  {},
                  *images_,
                  fmt::format("0: {} has no encoder of images that its file describes",
                              model.name.empty() ? "the model" : model.name)});
  }
  if (!sizes || !model.vision) {
    return;
  }
  for (const SizeShare& one : *sizes) {
    const zoo::ImageTokens seen = zoo::image_tokens(*model.vision, one.size);
    generator.sizes.push_back({{.tokens = seen.tokens,
                                .tiles = seen.tiles,
                                .patches = seen.patches,
                                .encoded = seen.encoded},
                               one.share});
  }
}

std::vector<std::string> ImageFlags::notes(const zoo::Model& model) const {
  std::vector<std::string> notes;
  const auto sizes = parse_image_sizes(sizes_.value_or(""));
  if (sizes && model.vision && parse_integer(images_.value_or("0")) != 0) {
    notes = mapped<std::string>(*sizes, [&](const SizeShare& one) {
      const zoo::ImageTokens seen = zoo::image_tokens(*model.vision, one.size);
      return fmt::format(
          "an image of {} x {} is {} tokens of the prompt, {} patches of the encoder",
          one.size.width, one.size.height, seen.tokens, seen.tiles * seen.patches);
    });
  }
  return notes;
}

void ImageFlags::refuse(const std::string& reason, Error& mistakes) const {
  refuse_given({{"--images-per-prompt", images_}, {"--image-size", sizes_}},
               "contradicts " + reason, mistakes);
}

}  // namespace orrery::cli
