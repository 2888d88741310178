// SPDX-License-Identifier: Apache-2.0
#include "serving/cloud_prices.h"

#include "base/file.h"
#include "base/lists.h"
#include "base/reader.h"

namespace orrery::serving {
namespace {

Result<CloudPrice> parse_price(const ConfigNode& node) {
  Reader read(node);
  CloudPrice price;
  price.cloud = read.required<std::string>("cloud");
  price.instance = read.required<std::string>("instance");
  price.machines = read.list<std::string>("machines");
  price.devices = read.required<std::int64_t>("devices");
  price.usd_per_hour = read.required<double>("usd_per_hour");
  price.region = read.required<std::string>("region");
  price.date = read.required<std::string>("date");
  price.source = read.required<std::string>("source");
  read.require(price.devices >= 1, "devices", "1 or more");
  read.require(price.usd_per_hour > 0, "usd_per_hour", "a number above 0");
  return read.finish(std::move(price));
}

}  // namespace

std::string CloudPrice::name() const {
  return instance + " of " + cloud + ", " + region + ", " + date;
}

Result<std::vector<CloudPrice>> parse_cloud_prices(const ConfigNode& node) {
  Reader read(node);
  std::vector<CloudPrice> prices =
      mapped(read.take_items("prices", true),
             [&](const ConfigNode* item) { return read.absorb(parse_price(*item)); });
  return read.finish(std::move(prices));
}

Result<std::vector<CloudPrice>> load_cloud_prices() {
  return find_config("prices", "clouds").and_then(load_config).and_then(parse_cloud_prices);
}

}  // namespace orrery::serving
