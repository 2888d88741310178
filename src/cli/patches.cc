// SPDX-License-Identifier: Apache-2.0
#include "serving/patches.h"

#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "machine/device_groups.h"

namespace orrery::cli {
namespace {

constexpr const char* kPatchesExamples =
    "The rows of one image in patches, one a device. n patches are of one branch of classifier-\n"
    "free guidance: with --split-guidance (the default) half of the devices. A row per scheme.\n"
    "Examples:\n"
    "  orrery patches --resolution 3840 --devices 8\n"
    "  orrery patches --network dit-xl --devices 4 --portion 0.5 --json\n"
    "  orrery patches --resolution 2048 --devices 8 --split-guidance false --warmup 8\n";

class Patched : public Command {
 public:
  void declare(Options& options) override {
    options.value("--machine", machine_, "NAME|FILE", "default dgx-a100-80g");
    fields_.declare(options);
    options.flag("--json", json_, "print one JSON object");
    options.footer(kPatchesExamples);
  }

  Result<std::string> run(Error mistakes) override {
    const machine::Machine machine =
        load_named("--machine", machine_.value_or("dgx-a100-80g"), machine::load_alike, mistakes);
    const serving::PatchQuery query = fields_.read(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    return serving::patch_parallel(machine, query)
        .map([&](const serving::PatchRun& run) {
          return json_ ? as_json(machine, query, run) : as_table(machine, query, run);
        })
        .map_error([&](Error error) { return fields_.placed(std::move(error)); });
  }

 private:
  static std::string as_table(const machine::Machine& machine, const serving::PatchQuery& query,
                              const serving::PatchRun& run) {
    std::string text = fmt::format("{} at {} x {} on {} of {}: n = {} patches, {} on one device\n",
                                   query.network, query.resolution, query.resolution, query.devices,
                                   machine.name, run.patches, to_string(run.single_image));
    text += fields_header<serving::PatchRow>();
    for (const serving::PatchRow& row : run.rows) {
      text += fields_row(row);
    }
    return text;
  }

  static std::string as_json(const machine::Machine& machine, const serving::PatchQuery& query,
                             const serving::PatchRun& run) {
    return report::json_text([&](report::JsonWriter& json) {
      json.begin_object();
      json.key("machine").value(machine.name);
      json.key("network").value(query.network);
      json.key("resolution").value(query.resolution);
      json.key("devices").value(query.devices);
      json.key("patches").value(run.patches);
      json.key("single_image_s").value(to_seconds(run.single_image));
      json.key("rows").objects(run.rows,
                               [&](const serving::PatchRow& row) { write_fields(json, row); });
      json.end_object();
    });
  }

  std::optional<std::string> machine_;
  FieldFlags<serving::PatchQuery> fields_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_patches() {
  return std::make_unique<Patched>();
}

}  // namespace orrery::cli
