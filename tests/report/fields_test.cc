// SPDX-License-Identifier: Apache-2.0
#include "report/fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace orrery::report {
namespace {

struct Wheel {
  double size = 0;
};
struct Cart {
  std::string name;
  std::optional<Wheel> spare;
  std::optional<double> weight;
  std::vector<Wheel> wheels;
};

void declare_cart(const Cart& cart, Fields& fields) {
  fields.field("name", "what it is called", cart.name);
  fields.part("spare", "a further wheel", cart.spare,
              [&](const Wheel& wheel) { fields.field("size", "metres", wheel.size); });
  fields.perhaps("weight", "kilograms", cart.weight);
  fields.list("wheels", {"from the front", "a wheel"}, cart.wheels,
              [&](const Wheel& wheel) { fields.field("size", "metres", wheel.size); });
  fields.map<double>("sizes", {"by place", "metres"}, [&](const auto& add) {
    for (const Wheel& wheel : cart.wheels) {
      add("place" + std::to_string(&wheel - cart.wheels.data()), wheel.size);
    }
  });
  fields.rows("pairs", {"all", "[place, metres]"}, cart.wheels, [&](const Wheel& wheel) {
    fields.item(std::string("here"));
    fields.item(wheel.size);
  });
  fields.choice("kind", "how many axles", {"one", "two"}, "one");
}

std::string json_of_cart(const Cart& cart) {
  return json_text([&](JsonWriter& json) {
    json.begin_object();
    JsonFields fields(json);
    declare_cart(cart, fields);
    json.end_object();
  });
}

TEST(Fields, AreJsonInTheOrderOfTheDeclaration) {
  const auto json = nlohmann::ordered_json::parse(
      json_of_cart({.name = "cart", .spare = Wheel{0.5}, .weight = {}, .wheels = {{1}, {2}}}));
  EXPECT_EQ(json.dump(),
            R"({"name":"cart","spare":{"size":0.5},"wheels":[{"size":1},{"size":2}],)"
            R"("sizes":{"place0":1,"place1":2},"pairs":[["here",1],["here",2]],"kind":"one"})");
}

TEST(Fields, AreFlatByDottedNamesWithoutLists) {
  FlatFields flat;
  declare_cart({.name = "cart", .spare = Wheel{0.5}, .weight = 3, .wheels = {{1}}}, flat);
  std::string text;
  for (const FlatFields::Value& value : flat.flat()) {
    text += value.name + "=" + value.text + " ";
  }
  EXPECT_EQ(text, "name=cart spare.size=0.5 weight=3 sizes.place0=1 kind=one ");
}

TEST(Fields, MakeTheSchemaOfAnEmptyResult) {
  SchemaFields fields("carts", "A cart.");
  declare_cart({}, fields);
  const auto schema = nlohmann::json::parse(fields.schema());
  EXPECT_EQ(schema.at("title"), "carts");
  EXPECT_EQ(schema.at("required"), nlohmann::json({"name", "wheels", "sizes", "pairs",
                                                   "kind"}));  // the others may be missing
  const auto& properties = schema.at("properties");
  EXPECT_EQ(properties.at("name"),
            nlohmann::json({{"type", "string"}, {"description", "what it is called"}}));
  EXPECT_EQ(properties.at("spare").at("required"), nlohmann::json({"size"}));
  EXPECT_EQ(properties.at("wheels").at("items").at("properties").at("size").at("type"), "number");
  EXPECT_EQ(properties.at("sizes").at("additionalProperties").at("type"), "number");
  EXPECT_EQ(properties.at("pairs").at("items").at("items").at("type"),
            nlohmann::json({"number", "string"}));
  EXPECT_EQ(properties.at("kind").at("enum"), nlohmann::json({"one", "two"}));
  EXPECT_EQ(schema.at("additionalProperties"), false);
}

}  // namespace
}  // namespace orrery::report
