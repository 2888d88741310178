// SPDX-License-Identifier: Apache-2.0
#include "study/settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "base/collect.h"
#include "base/file.h"
#include "base/reader.h"
#include "serving/engine.h"
#include "workload/plan/framework.h"

namespace orrery::study {
namespace {

/// False when T has no such field.
template <class T>
bool apply(const Setting& setting, T& target, Error& error) {
  bool known = false;
  T::fields([&](std::string_view name, auto member, std::string_view) {
    if (name != setting.field) {
      return;
    }
    known = true;
    using Value = std::remove_reference_t<decltype(target.*member)>;
    auto value = parse_value<Value>(setting.value);
    if (value) {
      target.*member = std::move(*value);
    } else {
      error.add(wrong_value(setting.where, setting.field, setting.value, value.error()));
    }
  });
  return known;
}

std::string where_of(const std::vector<Setting>& settings, std::string_view field) {
  const auto last = std::find_if(settings.rbegin(), settings.rend(),
                                 [&](const Setting& s) { return s.field == field; });
  return last == settings.rend() ? "" : last->where;
}

void check_extent(const std::vector<Setting>& settings, std::string_view field, std::int64_t value,
                  std::int64_t limit, Error& error) {
  if (value < 1 || value > limit) {
    error.add({where_of(settings, field), std::string(field), std::to_string(value),
               "a whole number from 1 to " + std::to_string(limit)});
  }
}

void check_shape(const std::vector<Setting>& settings, const TableCase& run, Error& error) {
  check_extent(settings, "layers", run.shape.layers, zoo::kMaxLayers, error);
  check_extent(settings, "hidden", run.shape.hidden, zoo::kMaxHidden, error);
  check_extent(settings, "heads", run.shape.heads, zoo::kMaxHidden, error);
  check_extent(settings, "vocab", run.shape.vocab, zoo::kMaxVocab, error);
  check_extent(settings, "sequence", run.plan.sequence, zoo::kMaxPositions, error);
  if (error.empty() && run.shape.hidden % run.shape.heads != 0) {
    error.add({where_of(settings, "heads"), "heads", std::to_string(run.shape.heads),
               "a divisor of hidden = " + std::to_string(run.shape.hidden)});
  }
  // In doubles: the product may be beyond any integer. 12 L H^2 is within a few per cent.
  const auto hidden = static_cast<double>(run.shape.hidden);
  const double parameters = 12 * static_cast<double>(run.shape.layers) * hidden * hidden +
                            static_cast<double>(run.shape.vocab) * hidden;
  if (error.empty() && parameters > 0.5 * static_cast<double>(zoo::kMaxParameters)) {
    error.add({where_of(settings, "hidden"), "hidden", std::to_string(run.shape.hidden),
               "a model of fewer parameters"});
  }
}

void set_replicas(const std::vector<Setting>& settings, TableCase& run, Error& error) {
  const plan::Plan& plan = run.plan;
  const Bytes together = Bytes(1) * plan.tp * plan.cp * plan.pp;  // saturates
  const std::int64_t devices = run.names.devices;
  if (together.value() < 1 || devices < 1 || devices % together.value() != 0) {
    error.add({where_of(settings, "devices"), "devices", std::to_string(devices),
               "a multiple of tp x cp x pp = " + std::to_string(together.value())});
    return;
  }
  run.plan.dp = devices / together.value();
}

}  // namespace

namespace {

/// Letters and digits, small.
std::string letters(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

/// An OtherName is what published tables and recipes call a model that is shipped under another
/// name.
struct OtherName {
  std::string_view name;
  std::string_view shipped;
};
constexpr auto kOtherNames = std::to_array<OtherName>({
    {"llama3-405b", "llama-3.1-405b"},
    {"llama4-maverick-llm", "llama-4-maverick"},
    {"llama4-scout-llm", "llama-4-scout"},
    {"nemotron-15b", "nemotron-4-15b"},
    {"nemotron-340b", "nemotron-4-340b"},
    {"nemotron3-8b", "nemotron-8b"},
    {"nemotron3-22b", "nemotron-22b"},
    {"nemotron4-8b", "nemotron-8b"},
    {"nemotron4-22b", "nemotron-22b"},
    {"nemotron5-h-8b", "nemotron-h-8b"},
    {"nemotron5-h-56b", "nemotron-h-56b"},
});

/// Tables spell names in their own way: "LLAMA3.1_405B" is llama-3.1-405b, "Nemotron-15B" is
/// nemotron-4-15b.
std::string shipped_name(const std::string& name) {
  const std::string wanted = letters(name);
  for (const std::string& shipped : list_configs("models")) {
    if (letters(shipped) == wanted) {
      return shipped;
    }
  }
  for (const OtherName& other : kOtherNames) {
    if (letters(other.name) == wanted) {
      return std::string(other.shipped);
    }
  }
  return name;
}

}  // namespace

Mistake wrong_value(std::string where, std::string field, std::string found, std::string expected) {
  if (found.empty()) {
    expected = "found '', expected " + expected;
  }
  return {std::move(where), std::move(field), std::move(found), std::move(expected)};
}

std::string without_extension(const std::string& name) {
  const std::filesystem::path path(name);
  const bool file = path.extension() == ".yaml" || path.extension() == ".json";
  std::error_code problem;
  return file && !std::filesystem::exists(path, problem) ? path.stem().string() : name;
}

namespace {

/// Returns the model with another number of layers, as its file would state it.
Result<zoo::Model> with_layers(const std::string& name, std::int64_t layers) {
  Result<zoo::ModelFile> file = zoo::load_model_file(name);
  if (!file) {
    return fail(std::move(file.error()));
  }
  for (const char* field : {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}) {
    for (ConfigField& own : file->node.fields) {
      if (own.name == field) {
        own.value.text = std::to_string(layers);
        return zoo::parse_model(file->node, file->name);
      }
    }
  }
  return fail(Error(Mistake{
      {}, "layers", std::to_string(layers), "a model whose file states its number of layers"}));
}

}  // namespace

Result<zoo::Model> TableCase::model() const {
  if (!names.model.empty()) {
    const std::string name = shipped_name(without_extension(names.model));
    auto model = shape.layers > 0 ? with_layers(name, shape.layers) : zoo::load_model(name);
    if (model && model->position == zoo::PositionKind::learned) {
      model->max_positions = std::max(model->max_positions, plan.sequence);
    }
    if (model && names.no_dropout) {
      model->dropout = model->attention_dropout = model->embedding_dropout = 0;
    }
    return model;
  }
  return zoo::gpt_model(
      "GPT " + std::to_string(shape.layers) + " x " + std::to_string(shape.hidden), shape.layers,
      shape.hidden, shape.heads, plan.sequence, shape.vocab);
}

std::vector<std::string> serving_fields() {
  std::vector<std::string> names{"model", "machine", "engine"};
  ServedRequests::fields([&](std::string_view name, auto, std::string_view) {
    names.push_back("requests." + std::string(name));
  });
  serving::Engine::fields(
      [&](std::string_view section, std::string_view name, auto, std::string_view) {
        names.push_back(std::string(section) + "." + std::string(name));
      });
  return names;
}

std::vector<std::string> setting_fields() {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name, auto, std::string_view) { names.emplace_back(name); };
  GptShape::fields(add);
  TableNames::fields(add);
  plan::Plan::fields(add);
  return names;
}

namespace {

/// Returns the settings behind those of the framework that the last of them names.
std::vector<Setting> with_framework(const std::vector<Setting>& settings, Error& error) {
  const auto named = std::find_if(settings.rbegin(), settings.rend(),
                                  [](const Setting& s) { return s.field == "framework"; });
  std::vector<Setting> all;
  if (named != settings.rend() && !named->value.empty()) {
    const auto fields = plan::framework_fields(named->value);
    if (!fields) {
      error.add({named->where, "framework", named->value, fields.error().to_string()});
    } else {
      for (const plan::FrameworkField& field : *fields) {
        all.push_back({field.name, field.value, field.place});
      }
    }
  }
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

}  // namespace

Result<TableCase> make_case(const std::vector<Setting>& given) {
  TableCase run;
  Error error;
  bool schedule_set = false;
  const std::vector<Setting> settings = with_framework(given, error);
  for (const Setting& setting : settings) {
    schedule_set = schedule_set || setting.field == "schedule";
    if (!apply(setting, run.shape, error) && !apply(setting, run.names, error) &&
        !apply(setting, run.plan, error)) {
      error.add({setting.where, "", setting.field,
                 "a field of the model's shape or the plan" +
                     did_you_mean(setting.field, setting_fields())});
    }
  }
  if (!schedule_set) {
    run.plan.schedule =
        run.plan.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
  }
  run.plan.tp_chunks = run.names.tp_overlap ? run.plan.tp : run.plan.tp_chunks;
  if (error.empty() && run.names.devices != 0) {
    set_replicas(settings, run, error);
  }
  if (error.empty() && run.names.microbatches > 0) {
    run.plan.global_batch =
        (Bytes(run.names.microbatches) * run.plan.dp * run.plan.microbatch).value();  // saturates
  }
  if (error.empty() && run.names.microbatch_of_stages) {
    const std::int64_t parts =
        std::max<std::int64_t>(1, (Bytes(run.plan.dp) * run.plan.pp).value());
    run.plan.microbatch = std::max<std::int64_t>(1, run.plan.global_batch / parts);
  }
  if (error.empty() && run.names.model.empty()) {
    check_shape(settings, run, error);
  }
  return or_mistakes(std::move(run), std::move(error));
}

}  // namespace orrery::study
