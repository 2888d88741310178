// SPDX-License-Identifier: Apache-2.0
#include "cli/search_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/reader.h"
#include "base/split.h"
#include "cli/step_flags.h"
#include "report/serving_gpus.h"
#include "report/serving_plans.h"
#include "serving/cloud_prices.h"
#include "serving/gpu_search.h"

namespace orrery::cli {

std::vector<std::string> listed(const std::optional<std::string>& text) {
  std::vector<std::string> parts;
  if (text) {
    const auto names = split_at(*text, ',');
    parts.assign(names.begin(), names.end());
  }
  return parts;
}

void SearchFlags::declare(Options& options) {
  options.value(
      "--price", price_, "USD|LIST",
      "of a device's hour, instead of the machine's; by machine: dgx-h100=2.5,dgx-b200=4; or "
      "of a cloud: aws, azure, gcp (configs/prices)");
  options.group("Search");
  options.value("--search", search_, "rate|plan|gpus",
                "the largest rate that keeps --slo; tokens/s of a GPU against a user's; or the "
                "fewest GPUs that keep --slo at --rate");
  options.value("--formats", formats_, "LIST",
                "for --search plan and gpus: " + serving::format_names() + "; default: engine's");
  options.output("--plot", plot_, "FILE", "for --search plan: also write the front as SVG");
  options.value("--slo", slo_, "LIMITS",
                "such as 'ttft=500 ms,tpot=30 ms', e2e; without --search: count who keeps them");
  options.value("--attainment", attainment_, "SHARE", "of requests within --slo; default 0.99");
}

serving::RateSearch SearchFlags::limits(Error& mistakes) const {
  serving::RateSearch search;
  if (slo_) {
    if (auto limits = serving::parse_objectives(*slo_)) {
      search.objectives = *limits;
    } else {
      mistakes.add(wrong_value("--slo", *slo_, limits.error()));
    }
  }
  if (attainment_ && !slo_) {
    mistakes.add({"--attainment", {}, {}, "goes with --slo, which so many requests keep"});
  }
  search.attainment = positive_number("--attainment", attainment_, search.attainment, mistakes);
  if (search.attainment > 1) {
    mistakes.add(wrong_value("--attainment", *attainment_, "a share above 0, at most 1"));
  }
  return search;
}

void SearchFlags::check_alone(Error& mistakes) const {
  if (search_ && *search_ != "rate" && *search_ != "plan" && *search_ != "gpus") {
    mistakes.add(wrong_value("--search", *search_, "rate, plan or gpus"));
  }
  refuse_given({{"--formats", formats_}, {"--plot", plot_}}, "is for --search plan", mistakes);
  if (search_ && !slo_) {
    mistakes.add({"--slo", {}, {}, "missing: the limits that --search keeps"});
  }
  if (attainment_ && slo_ && !search_) {
    mistakes.add({"--attainment", {}, {}, "is for --search, which looks for such a rate"});
  }
}

void SearchFlags::take_price(machine::Machine& machine, const std::string& name,
                             Error& mistakes) const {
  if (!price_) {
    return;
  }
  if (const auto clouds = serving::load_cloud_prices(); clouds) {
    const bool cloud = std::ranges::count(*clouds, *price_, &serving::CloudPrice::cloud) > 0;
    const auto its = std::ranges::find_if(*clouds, [&](const serving::CloudPrice& one) {
      return one.cloud == *price_ && std::ranges::count(one.machines, name) > 0;
    });
    if (its != clouds->end()) {
      machine.device.price_per_hour = its->per_device();
      tell_notes({fmt::format("{}: {:.4g} USD per hour of a device, as {}", name,
                              its->per_device().value(), its->name())});
      return;
    }
    if (cloud) {
      mistakes.add(wrong_value("--price", *price_, "a cloud that has " + name + ", or a price"));
      return;
    }
  }
  if (price_->find('=') == std::string::npos) {
    machine.device.price_per_hour = Money(positive_number("--price", price_, 1, mistakes));
    return;
  }
  for (const std::string& part : listed(price_)) {
    const std::size_t equals = std::min(part.find('='), part.size());
    if (part.substr(0, equals) == name) {
      const std::string amount = part.substr(std::min(equals + 1, part.size()));
      machine.device.price_per_hour = Money(positive_number("--price", amount, 1, mistakes));
      return;
    }
  }
  if (machine.device.price_per_hour == Money(0)) {
    mistakes.add(wrong_value("--price", *price_, "a price of " + name + ", too: it has none"));
  }
}

void SearchFlags::read(serving::PlanSearch& search, const std::optional<std::string>& devices,
                       Error& mistakes) const {
  const serving::RateSearch its = limits(mistakes);
  search.objectives = its.objectives;
  search.attainment = its.attainment;
  for (const std::string& name : listed(formats_)) {
    const auto* const format = std::ranges::find(serving::kFormats, name, &serving::Format::name);
    if (format == serving::kFormats.end()) {
      mistakes.add(wrong_value("--formats", name, "of " + serving::format_names()));
    } else {
      search.formats.push_back(*format);
    }
  }
  constexpr std::int64_t kMostDevices = 1024;
  search.devices = whole_number("--devices", devices, 8, kMostDevices, mistakes);
  if (is("gpus") && !slo_) {
    mistakes.add({"--slo", {}, {}, "missing: the limits that --search gpus keeps"});
  }
  if (is("gpus") && plot_) {
    mistakes.add({"--plot", {}, {}, "is for --search plan"});
  }
}

void SearchFlags::read_load(serving::PlanSearch& search, const RequestFlags& requests,
                            Error& mistakes) const {
  const bool given = requests.has_rate() || requests.has_trace() || requests.has_stages();
  if (is("plan") && !slo_) {
    requests.refuse_arrivals("--search plan without --slo, which sends a request when one ends",
                             mistakes);
    return;
  }
  if (is("gpus") && !given) {
    mistakes.add(
        {"--rate", {}, {}, "missing: requests per second that --search gpus serves, or --trace"});
    return;
  }
  if (!given) {
    return;  // the rate is what is looked for
  }
  search.requests = requests.read(search.load, mistakes).requests;
  if (search.requests.empty()) {
    if (mistakes.empty()) {
      mistakes.add({"--requests", {}, {}, "at least one that has an answer"});
    }
    return;
  }
  const Time last =
      std::ranges::max_element(search.requests, {}, &requests::Request::arrival)->arrival;
  const auto gaps = static_cast<double>(search.requests.size() - 1);
  search.rate = last > Time(0) ? gaps / to_seconds(last) : 0;
}

Result<std::string> SearchFlags::run(const zoo::Model& model, const serving::Engine& engine,
                                     const serving::PlanSearch& search, const Form& form) const {
  if (is("gpus")) {
    const serving::GpusFound found = serving::search_gpus(model, engine, search);
    if (found.choices.empty()) {
      Error none(search.goes_on()
                     ? "no number of GPUs keeps the limits"
                     : "ended before a number of GPUs was found that keeps the limits");
      for (const serving::Loser& loser : found.losers) {
        none.add({found.layouts[loser.layout].name(), {}, {}, loser.reason});
      }
      return fail(std::move(none));
    }
    const auto json = [&] { return report::serving_gpus_json(found, model.name, search); };
    return form.html.beside(form.json  ? json()
                            : form.csv ? report::serving_gpus_csv(found)
                                       : report::serving_gpus_text(found, model.name, search),
                            json);
  }
  const serving::PlansFound found = serving::search_plans(model, engine, search);
  const bool shown = !found.front.empty() || (!form.csv && !found.beaten.empty());
  if (found.screened == 0 || (!shown && (form.csv || plot_))) {
    const char* limits = search.goes_on() ? "no plan keeps the limits"
                                          : "ended before a plan was found that keeps the limits";
    Error none(found.screened == 0 ? "no plan runs" : limits);
    for (const serving::Loser& loser : found.losers) {
      none.add({found.layouts[loser.layout].name(), {}, {}, loser.reason});
    }
    return fail(std::move(none));
  }
  if (plot_) {
    if (auto done = write_file(*plot_, report::serving_plans_svg(found, model.name)); !done) {
      return fail(std::move(done.error()));
    }
  }
  const auto json = [&] { return report::serving_plans_json(found, model.name); };
  return form.html.beside(form.json  ? json()
                          : form.csv ? report::serving_plans_csv(found)
                                     : report::serving_plans_text(found, model.name),
                          json);
}

}  // namespace orrery::cli
