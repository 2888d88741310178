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

struct Shelf {
  std::optional<double> height;
  std::optional<Wheel> best;
  std::vector<std::optional<double>> widths;
  std::vector<std::optional<Wheel>> spares;
  std::vector<Cart> carts;
};

void declare(const Shelf& shelf, Fields& fields) {
  fields.nullable("height", "metres", shelf.height);
  const auto size = [&](const Wheel& wheel) { fields.field("size", "metres", wheel.size); };
  fields.nullable_part("best", "a wheel", shelf.best, size);
  fields.values("widths", {"by board", "metres"}, shelf.widths);
  fields.list("spares", {"by board", "a wheel"}, shelf.spares, size);
  fields.nullable_values(
      "ends", {"from, to", "metres"},
      shelf.height ? std::optional(std::vector{0.0, *shelf.height}) : std::nullopt);
  fields.perhaps_values("empty", {"nothing", "nothing"}, std::vector<double>());
  fields.when(shelf.height > 1, "high", "it is", true);
  fields.objects("carts", {"by name", "a cart"}, shelf.carts, &Cart::name,
                 [&](const Cart& cart) { fields.field("wheels", "how many", cart.wheels.size()); });
  fields.field("took", "seconds", 1500_ms);
}

TEST(Fields, WhatIsNotKnownIsNullOrLeftOut) {
  const auto compact = [](const Shelf& shelf) {
    return nlohmann::ordered_json::parse(json_of(shelf)).dump();
  };
  EXPECT_EQ(compact({}),
            R"({"height":null,"best":null,"widths":[],"spares":[],"ends":null,"carts":{},)"
            R"("took":1.5})");
  EXPECT_EQ(compact({.height = 2,
                     .best = Wheel{1},
                     .widths = {1, std::nullopt},
                     .spares = {std::nullopt, Wheel{3}},
                     .carts = {{.name = "a", .spare = {}, .weight = {}, .wheels = {{1}}}}}),
            R"({"height":2,"best":{"size":1},"widths":[1,null],)"
            R"("spares":[null,{"size":3}],"ends":[0,2],"high":true,)"
            R"("carts":{"a":{"wheels":1}},"took":1.5})");
}

TEST(Fields, ASchemaSaysWhatMayBeNull) {
  SchemaFields fields("shelves", "A shelf.");
  declare(Shelf{}, fields);
  const auto schema = nlohmann::json::parse(fields.schema());
  const auto& of = schema.at("properties");
  EXPECT_EQ(of.at("height").at("type"), nlohmann::json({"number", "null"}));
  EXPECT_EQ(of.at("best").at("type"), nlohmann::json({"object", "null"}));
  EXPECT_EQ(of.at("ends").at("type"), nlohmann::json({"array", "null"}));
  EXPECT_EQ(of.at("widths").at("items").at("type"), nlohmann::json({"number", "null"}));
  EXPECT_EQ(of.at("carts").at("additionalProperties").at("properties").at("wheels").at("type"),
            "integer");
  EXPECT_EQ(schema.at("required"),
            nlohmann::json({"height", "best", "widths", "spares", "ends", "carts", "took"}));
}

}  // namespace
}  // namespace orrery::report
