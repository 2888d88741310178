// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "base/config_node.h"
#include "base/file.h"
#include "base/lists.h"
#include "base/names.h"
#include "base/reader.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/plain_fields.h"
#include "report/cell.h"
#include "report/json_writer.h"
#include "report/node_json.h"
#include "serving/engine.h"
#include "study/sweep/kind.h"
#include "study/sweep/run_sweep.h"
#include "study/sweep/study.h"
#include "ui/server.h"

namespace orrery::cli {
namespace {

constexpr const char* kUiExamples =
    "Opens nothing and sends nothing: it answers on 127.0.0.1 to who has the token, until it is\n"
    "interrupted. The address is printed on the error output (docs/ui.md).\n"
    "Examples:\n"
    "  orrery ui\n"
    "  orrery ui --port 8080 --token secret\n";

constexpr std::int64_t kUsualPort = 8470;
constexpr std::int64_t kMostPort = 65535;
constexpr const char* kSource = "page";

std::vector<std::string> names_of(const std::string& kind) {
  if (kind != "engines") {
    return list_configs(kind);
  }
  return mapped<std::string>(serving::engines(), &serving::EngineDefaults::name);
}

/// Fields that name files, which a page has none of.
bool names_file(std::string_view field) {
  constexpr std::array<std::string_view, 4> kFiles{"strategy", "kernels", "trace", "topology"};
  return std::ranges::find(kFiles, field) != kFiles.end();
}

/// "3 TB/s" and "90 pJ/B" are values; what else has a slash, or an ending, may be a file.
bool may_be_file(std::string_view text) {
  const std::size_t slash = text.find('/');
  const bool is_rate = slash != std::string_view::npos && !text.empty() &&
                       std::isdigit(static_cast<unsigned char>(text.front())) != 0 &&
                       slash + 1 < text.size() && text.find('/', slash + 1) == text.npos &&
                       text.find("..") == text.npos;
  const std::size_t dot = text.rfind('.');
  const bool has_ending = dot != text.npos && dot + 1 < text.size() &&
                          std::ranges::all_of(text.substr(dot + 1), [](unsigned char letter) {
                            return std::isalpha(letter) != 0;
                          });
  return text == "-" || (slash != text.npos && !is_rate) || has_ending || text.starts_with('.') ||
         text.starts_with('~');
}

/// Everything of a page's study that could name a file, wherever it stands.
void refuse_files(const ConfigNode& node, std::string_view field, Error& mistakes) {
  constexpr std::array<std::string_view, 4> kNamed{"model", "machine", "plan", "engine"};
  const std::string_view last = field.substr(field.rfind('.') + 1);  // npos + 1 is 0
  if (names_file(last)) {
    mistakes.add({node.where(), std::string(field), {}, "a page cannot name files"});
    return;
  }
  if (node.kind == ConfigNode::Kind::scalar) {
    const bool named = std::ranges::find(kNamed, field) != kNamed.end();
    const std::vector<std::string> names =
        named ? names_of(std::string(field) + "s") : std::vector<std::string>();
    if (named ? std::ranges::find(names, node.text) == names.end() : may_be_file(node.text)) {
      mistakes.add({node.where(), std::string(field), node.text,
                    named ? "a shipped name" + did_you_mean(node.text, names)
                          : std::string("a value; a page cannot name files")});
    }
  }
  for (const ConfigField& inner : node.fields) {
    refuse_files(inner.value, inner.name, mistakes);
  }
  for (const ConfigNode& item : node.items) {
    refuse_files(item, field, mistakes);
  }
}

Result<ConfigNode> read_page(const std::string& body) {
  return parse_config(body, kSource, syntax_of(body, "-"))
      .and_then([](ConfigNode node) -> Result<ConfigNode> {
        Error mistakes;
        refuse_files(node, "", mistakes);
        return or_mistakes(std::move(node), std::move(mistakes));
      });
}

/// Runs the first point of the page's study: {figures, error}.
Result<std::string> run_point(const std::string& body) {
  return read_page(body)
      .and_then([](const ConfigNode& node) { return sweep::parse_study(node, kSource); })
      .and_then([](const sweep::Study& study) -> Result<std::string> {
        const std::string_view kind = study.kind->name;
        if (kind != "simulate" && kind != "serve") {
          return fail(Error(Mistake{"", "kind", std::string(kind), "simulate or serve"}));
        }
        const sweep::SweepPoint point = sweep::prepare_point(study, 0, ORRERY_VERSION);
        sweep::Shared shared;
        const sweep::Outcome outcome =
            point.prepared.run ? point.run(shared)
                               : sweep::Outcome{{}, point.prepared.mistakes.to_string()};
        return report::json_text([&](report::JsonWriter& json) {
          json.begin_object().key("figures").begin_object();
          for (std::size_t i = 0; i < outcome.figures.size(); ++i) {
            json.key(study.kind->figures[i]);
            report::write_cell(json, outcome.figures[i]);
          }
          json.end_object().key("error").value(outcome.error).end_object();
        });
      });
}

/// The page's YAML as JSON, to fill the form.
Result<std::string> read_shared(const std::string& body) {
  return read_page(body).map([](const ConfigNode& node) {
    return report::json_text([&](report::JsonWriter& json) { report::write_node(json, node); });
  });
}

std::string text_of(const ConfigNode& node) {
  return report::json_text([&](report::JsonWriter& json) { report::write_node(json, node); });
}

/// {"kind": "machine", "name": "dgx-h100"}: the description as its file states it.
Result<std::string> describe(const std::string& body) {
  return parse_config(body, kSource, ConfigSyntax::json)
      .and_then([](const ConfigNode& node) -> Result<std::string> {
        Reader read(node);
        const auto kind = read.required<std::string>("kind");
        const auto name = read.required<std::string>("name");
        constexpr std::array<std::string_view, 3> kKinds{"model", "machine", "plan"};
        read.require(std::ranges::find(kKinds, kind) != kKinds.end(), "kind",
                     "model, machine or plan");
        const std::vector<std::string> names = names_of(kind + "s");
        read.require(std::ranges::find(names, name) != names.end(), "name",
                     "a shipped name" + did_you_mean(name, names));
        return read.finish(kind + "s").and_then([&](const std::string& folder) {
          return find_config(folder, name).and_then(load_config).map(text_of);
        });
      });
}

void write_option(report::JsonWriter& json, const DeclaredOption& option) {
  json.begin_object();
  json.key("name").value(option.name);
  json.key("kind").value(option.kind);
  json.key("sentence").value(option.sentence);
  json.end_object();
}

/// Returns what the form offers: names of descriptions, fields of a plan and of an engine.
Result<std::string> choices(const std::string&) {
  return report::json_text([](report::JsonWriter& json) {
    json.begin_object();
    for (const char* const kind : {"models", "machines", "plans", "engines"}) {
      json.key(kind).values(names_of(kind));
    }
    json.key("plan_fields").array(declared_options("simulate"), [&](const DeclaredOption& option) {
      if (option.group.starts_with("Plan fields") && !names_file(option.name)) {
        write_option(json, option);
      }
    });
    json.key("engine_fields").begin_array();
    serving::Engine::fields([&](std::string_view section, std::string_view name, auto member,
                                std::string_view sentence) {
      if (!names_file(name)) {
        write_option(json, {.name = fmt::format("{}.{}", section, name),
                            .kind = kind_of_field(member),
                            .sentence = std::string(sentence)});
      }
    });
    json.end_array();
    json.key("version").value(ORRERY_VERSION);
    json.end_object();
  });
}

class Ui : public Command {
 public:
  void declare(Options& options) override {
    options.value("--port", port_, "INT", "of 127.0.0.1; default 8470, 0 any that is free");
    options.value("--token", token_, "TEXT",
                  "what every request must show; default: a new one that nobody can guess");
    options.footer(kUiExamples);
  }

  Result<std::string> run(Error mistakes) override {
    std::int64_t port = kUsualPort;
    take("--port", port_, port, mistakes);
    if (port < 0 || port > kMostPort) {
      mistakes.add(wrong_value("--port", *port_, "0 to 65535"));
    }
    const std::string token = token_ ? *token_ : collect(ui::random_token(), mistakes);
    const auto plain = [](unsigned char letter) {
      return std::isalnum(letter) != 0 || letter == '-' || letter == '_';
    };
    if (token.empty() || !std::ranges::all_of(token, plain)) {
      mistakes.add(wrong_value("--token", token, "letters, digits, - and _"));
    }
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    ui::Server server(static_cast<int>(port), token,
                      {{"/api/choices", choices},
                       {"/api/describe", describe},
                       {"/api/read", read_shared},
                       {"/api/run", run_point}});
    return server.bind().map([&](int bound) {
      fmt::print(stderr, "http://127.0.0.1:{}/?token={}\n", bound, token);
      std::fflush(stderr);
      server.run();
      return std::string();
    });
  }

 private:
  std::optional<std::string> port_;
  std::optional<std::string> token_;
};

}  // namespace

std::unique_ptr<Command> make_ui() {
  return std::make_unique<Ui>();
}

}  // namespace orrery::cli
