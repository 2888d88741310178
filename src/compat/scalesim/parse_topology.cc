// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/collect.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/reader.h"
#include "compat/scalesim/files.h"
#include "compat/scalesim/lines.h"

namespace orrery::scalesim {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 31;
constexpr double kMostProduct = 1e18;
constexpr std::size_t kProductColumns = 4;
constexpr std::size_t kConvolutionColumns = 8;
constexpr std::size_t kStridesColumns = 9;  // of height and of width

using Cells = std::vector<std::string_view>;

bool is_sparsity(std::string_view name) {
  return lower_case(name.substr(0, 8)) == "sparsity";
}

class TopologyParser {
 public:
  explicit TopologyParser(const std::string& file) : file_(file), error_(file) {}

  Result<std::vector<Layer>> run(std::string_view text) {
    int line = 0;
    for (const std::string_view row : parts_of(text, '\n')) {
      ++line;
      Cells cells = parts_of(row, ',');
      if (cells.size() > 1 && cells.back().starts_with('#')) {
        cells.pop_back();  // SCALE-Sim drops what stands after the last comma
      }
      while (!cells.empty() && cells.back().empty()) {
        cells.pop_back();
      }
      if (cells.empty()) {
        continue;
      }
      if (columns_ == 0) {
        take_header(cells, line);
      } else {
        take_layer(cells, line);
      }
    }
    if (error_.empty() && layers_.empty()) {
      error_.add({file_, {}, {}, "a header and at least one layer"});
    }
    return or_mistakes(std::move(layers_), error_.take());
  }

 private:
  std::string where(int line) const { return fmt::format("{}:{}", file_, line); }

  void take_header(Cells& cells, int line) {
    for (const std::string_view cell : cells) {
      names_.push_back(printable(cell));
    }
    sparse_ = is_sparsity(cells.back());
    columns_ = cells.size() - (sparse_ ? 1 : 0);
    if (!known_columns()) {
      error_.add({where(line),
                  {},
                  fmt::format("{} columns", cells.size()),
                  "a header of 4 columns (layer, M, N, K) or 8 (layer, input height and width, "
                  "filter height and width, channels, filters, stride) or 9 (strides of height and "
                  "width), and perhaps Sparsity"});
    }
  }

  bool known_columns() const {
    return columns_ == kProductColumns || columns_ == kConvolutionColumns ||
           columns_ == kStridesColumns;
  }

  void take_layer(const Cells& cells, int line) {
    if (!known_columns()) {
      return;  // said once, of the header
    }
    if (cells.size() != columns_ && !(sparse_ && cells.size() == columns_ + 1)) {
      error_.add({where(line),
                  {},
                  fmt::format("{} values", cells.size()),
                  fmt::format("{} as the header has", columns_ + (sparse_ ? 1 : 0))});
      return;
    }
    bool right = true;
    std::vector<std::int64_t> extents;
    for (std::size_t i = 1; i < columns_; ++i) {
      const auto value = parse_integer(cells[i]);
      if (!value || *value < 1 || *value > kMostExtent) {
        error_.add({where(line), names_[i], printable(cells[i]),
                    fmt::format("a whole number from 1 to {}", kMostExtent)});
        right = false;
      }
      extents.push_back(value.value_or(1));
    }
    Layer layer;
    layer.name = printable(cells[0]);
    if (cells.size() > columns_) {
      layer.sparsity = sparsity(cells.back(), line);
    }
    if (right && shape(extents, line, layer)) {
      layers_.push_back(std::move(layer));
    }
  }

  compute::Sparsity sparsity(std::string_view text, int line) {
    const Cells parts = parts_of(text, ':');
    if (parts.size() == 2) {
      const auto n = parse_integer(parts[0]);
      const auto m = parse_integer(parts[1]);
      if (n && m && *n >= 1 && *n <= *m && *m <= kMostExtent) {
        return {*n, *m};
      }
    }
    error_.add({where(line), names_.back(), printable(text), "N:M with 1 <= N <= M, such as 2:4"});
    return {};
  }

  bool shape(const std::vector<std::int64_t>& e, int line, Layer& layer) {
    double product = 1;
    for (const std::int64_t extent : e) {
      product *= static_cast<double>(extent);
    }
    if (product > kMostProduct) {
      error_.add({where(line),
                  {},
                  fmt::format("{:.3g}", product),
                  fmt::format("extents whose product is at most {:.0e}", kMostProduct)});
      return false;
    }
    if (columns_ == kProductColumns) {
      layer.gemm = {1, e[0], e[1], e[2]};
      return true;
    }
    if (columns_ == kStridesColumns && e[7] != e[6]) {
      error_.add({where(line), names_[8], std::to_string(e[7]),
                  fmt::format("{}, as of height: strides that differ are not read", e[6])});
      return false;
    }
    layer.convolution = compute::Convolution{e[0], e[1], e[2], e[3], e[4], e[5], e[6]};
    if (e[2] > e[0] || e[3] > e[1]) {
      error_.add({where(line),
                  {},
                  fmt::format("a filter of {} x {}", e[2], e[3]),
                  fmt::format("one no larger than the input, {} x {}", e[0], e[1])});
      return false;
    }
    layer.gemm = compute::gemm_of(*layer.convolution, false);
    return true;
  }

  const std::string& file_;
  FileMistakes error_;
  std::vector<std::string> names_;
  std::size_t columns_ = 0;
  bool sparse_ = false;
  std::vector<Layer> layers_;
};

}  // namespace

Result<std::vector<Layer>> parse_topology(std::string_view text, const std::string& file) {
  return TopologyParser(file).run(text);
}

}  // namespace orrery::scalesim
