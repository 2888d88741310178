// SPDX-License-Identifier: Apache-2.0
#include "serving/copy.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "serving/steady.h"

namespace orrery::serving {
namespace {

/// All but `visible` of layers without windows is counted where `windows` asks for it.
void fill_shape(const scheduler::Tick& tick, const std::vector<std::int64_t>& windows,
                step::StepShape& shape) {
  shape.tokens = tick.tokens;
  shape.samples = static_cast<std::int64_t>(tick.entries.size());
  shape.prompts.clear();
  shape.tiles.clear();
  shape.encoded = 0;
  shape.decodes = 0;
  shape.visible.assign(windows.size(), 0);
  shape.longest = 0;
  shape.queries = 1;
  for (const scheduler::Scheduled& entry : tick.entries) {
    if (entry.tokens > 1 + entry.drafts) {
      shape.prompts.push_back({.queries = entry.tokens, .context = entry.context});
      continue;
    }
    ++shape.decodes;
    shape.queries = std::max(shape.queries, entry.tokens);
    const std::int64_t keys = entry.context + 1;
    shape.longest = std::max(shape.longest, static_cast<double>(keys));
    for (std::size_t w = 0; w < windows.size(); ++w) {
      shape.visible[w] += static_cast<double>(windows[w] > 0 ? std::min(keys, windows[w]) : keys);
    }
  }
}

void pad(std::vector<step::StepShape>& shapes) {
  std::int64_t most = 0;
  for (const step::StepShape& shape : shapes) {
    most = std::max(most, shape.tokens);
  }
  for (step::StepShape& shape : shapes) {
    shape.tokens = most;
  }
}

void sort_out(std::vector<std::int32_t>& adapters) {
  std::sort(adapters.begin(), adapters.end());
  adapters.erase(std::unique(adapters.begin(), adapters.end()), adapters.end());
}

}  // namespace

std::size_t emptiest(const std::vector<Copy>& copies) {
  return static_cast<std::size_t>(std::ranges::min_element(copies, {}, &Copy::unfinished) -
                                  copies.begin());
}

StepShapes::StepShapes(const Engine& engine, step::StepCost& cost, std::size_t copies)
    : engine_(engine), cost_(cost), shapes_(copies), growing_(cost.windows().size()) {}

void StepShapes::form(const std::vector<Copy>& copies, const Ticks& ticks) {
  const std::vector<std::int64_t>& windows = cost_.windows();
  tokens_ = requests_ = most_requests_ = images_ = 0;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    step::StepShape& shape = shapes_[i];
    fill_shape(*ticks[i], windows, shape);
    tokens_ += shape.tokens;
    requests_ += shape.samples;
    most_requests_ = std::max(most_requests_, shape.samples);
    if (engine_.adapter_slots > 0 && !engine_.whole_adapters) {
      add_adapters(copies[i], *ticks[i], shape);
    }
    if (!copies[i].images.empty()) {
      add_images(copies[i], *ticks[i], shape);
    }
  }
  if (engine_.whole_adapters) {
    split_by_model(copies, ticks);
  }
  pad(shapes_);
  if (copies.size() > 1) {
    return;  // no two steps are alike
  }
  growing_[0] = shapes_[0].decodes;
  for (std::size_t w = 1; w < windows.size(); ++w) {
    growing_[w] = std::count_if(ticks[0]->entries.begin(), ticks[0]->entries.end(),
                                [&](const scheduler::Scheduled& entry) {
                                  return entry.tokens == 1 && entry.context + 1 < windows[w];
                                });
  }
}

void StepShapes::add_adapters(const Copy& copy, const scheduler::Tick& tick,
                              step::StepShape& shape) {
  shape.adapted = 0;
  different_.clear();
  for (const scheduler::Scheduled& entry : tick.entries) {
    const std::int32_t adapter = copy.scheduler->request(entry.request).spec.adapter;
    if (adapter >= 0) {
      shape.adapted += entry.tokens;
      different_.push_back(adapter);
    }
  }
  sort_out(different_);
  shape.adapters = static_cast<std::int64_t>(different_.size());
}

void StepShapes::add_images(const Copy& copy, const scheduler::Tick& tick, step::StepShape& shape) {
  for (const scheduler::Scheduled& entry : tick.entries) {
    const auto found = copy.images.find(entry.request);
    if (found == copy.images.end()) {
      continue;
    }
    for (const requests::Image& image : found->second) {
      if (image.at >= entry.context && image.at < entry.context + entry.tokens) {
        shape.tiles.insert(shape.tiles.end(), static_cast<std::size_t>(image.tiles),
                           {.queries = image.patches, .context = 0});
        shape.encoded += image.encoded;
        ++images_;
      }
    }
  }
}

void StepShapes::split_by_model(const std::vector<Copy>& copies, const Ticks& ticks) {
  const auto model_of = [&](std::size_t copy, const scheduler::Scheduled& entry) {
    return copies[copy].scheduler->request(entry.request).spec.adapter;
  };
  different_.clear();
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    for (const scheduler::Scheduled& entry : ticks[i]->entries) {
      different_.push_back(model_of(i, entry));
    }
  }
  sort_out(different_);
  parts_.resize(different_.size());
  scheduler::Tick part;
  for (std::size_t m = 0; m < different_.size(); ++m) {
    parts_[m].resize(ticks.size());
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      const std::vector<scheduler::Scheduled>& entries = ticks[i]->entries;
      part.entries.clear();
      std::copy_if(entries.begin(), entries.end(), std::back_inserter(part.entries),
                   [&](const auto& entry) { return model_of(i, entry) == different_[m]; });
      part.tokens =
          std::accumulate(part.entries.begin(), part.entries.end(), decltype(part.tokens){0},
                          [](auto sum, const auto& entry) { return sum + entry.tokens; });
      fill_shape(part, cost_.windows(), parts_[m][i]);
    }
    pad(parts_[m]);
  }
}

Time StepShapes::longest(std::vector<step::StepShape>& shapes) {
  Time longest{0};
  Time computed{0};
  Energy drawn{0};
  for (const step::StepShape& shape : shapes) {
    const compute::ClockPoint step = cost_.run(shape);
    const Time guesses = guessing(engine_, cost_, shape);
    const compute::ClockPoint images = cost_.encode(shape);
    const Time time = images.time + step.time + guesses;
    computed += time;
    drawn += images.energy + step.energy + step.power * guesses;
    longest = std::max(longest, time);
    encoding_ = std::max(encoding_, images.time);
  }
  const auto copies = std::ssize(shapes);
  energy_ += (drawn + cost_.idle_power() * (longest * copies - computed)) /
             std::max<double>(1, static_cast<double>(copies));
  return longest;
}

Time StepShapes::accelerator() {
  energy_ = Energy(0);
  encoding_ = Time(0);
  if (!engine_.whole_adapters) {
    return longest(shapes_);
  }
  Time sum{0};
  for (std::vector<step::StepShape>& part : parts_) {
    sum += longest(part);
  }
  return sum;
}

void StepShapes::go_on() {
  for (std::size_t w = 0; w < growing_.size(); ++w) {
    shapes_[0].visible[w] += static_cast<double>(growing_[w]);
  }
  shapes_[0].longest += 1;
}

void StepShapes::count_growing(const scheduler::Scheduler& scheduler) {
  for (std::size_t w = 1; w < growing_.size(); ++w) {
    growing_[w] = std::count_if(scheduler.running().begin(), scheduler.running().end(),
                                [&](scheduler::RequestIndex index) {
                                  return scheduler.request(index).computed + 1 < cost_.windows()[w];
                                });
  }
}

}  // namespace orrery::serving
