// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/store.h"

#include <algorithm>

#include "base/lists.h"
#include "base/names.h"
#include "base/split.h"
#include "study/sweep/checksums.h"
#include "study/sweep/config_path.h"
#include "study/sweep/input_hash.h"

namespace orrery::sweep {
namespace {

constexpr const char* kHead = "CREATE TABLE IF NOT EXISTS head (name TEXT PRIMARY KEY, value)";
constexpr char kBetween[] = "\n";  // of names in one text

std::vector<std::string> split(const std::string& text) {
  return text.empty() ? std::vector<std::string>()
                      : mapped<std::string>(split_at(text, kBetween[0]), std::identity{});
}

/// "a, b" of columns, each in quotes after `prefix`.
std::string columns(const std::vector<std::string>& names, const std::string& prefix) {
  std::string text;
  for (const std::string& name : names) {
    text += ", " + prefix + quoted_name(name);
  }
  return text;
}

Result<void> write_head(Database& database, const StoreHead& head) {
  const std::vector<std::pair<std::string, Cell>> values{
      {"kind", head.kind},
      {"version", head.version},
      {"study", head.study},
      {"points", static_cast<std::int64_t>(head.points)},
      {"varied", joined(head.varied, kBetween)},
      {"figures", joined(head.figures, kBetween)}};
  for (const auto& [name, value] : values) {
    if (auto ok = database.run("INSERT OR REPLACE INTO head VALUES (?, ?)", {name, value}); !ok) {
      return ok;
    }
  }
  return head_checksum(database).and_then([&](const std::string& checksum) {
    return database.run("INSERT OR REPLACE INTO head VALUES ('checksum', ?)", {checksum});
  });
}

/// Texts of a query's first column.
Result<std::vector<std::string>> texts(Database& database, const std::string& sql) {
  return database.query(sql).map([](const Rows& rows) {
    return mapped(rows.rows, [&](const std::vector<Cell>& row) { return to_string(row.front()); });
  });
}

}  // namespace

std::string study_hash(const Study& study, const std::string& version) {
  std::string text = "orrery " + version + "\n" + std::string(study.kind->name) + "\n";
  text += canonical_text(study.base) + "\n";
  for (const auto& [name, node] : study.files) {
    text += name.first + " " + name.second + " " + canonical_text(node) + "\n";
  }
  for (std::size_t axis = 0; axis < study.space.axes.size(); ++axis) {
    text += study.space.axes[axis].name + ":";
    for (std::size_t point = 0; point < study.space.count; ++point) {
      const ConfigNode* value = study.space.value(point, axis);
      text += "\n" + (value == nullptr ? "" : canonical_text(*value));
    }
  }
  return input_hash(text);
}

std::string point_hash(const Prepared& prepared, const std::string& version) {
  return input_hash("orrery " + version + "\n" + prepared.inputs);
}

StoreHead head_of(const Study& study, const std::string& version) {
  StoreHead head;
  head.kind = study.kind->name;
  head.version = version;
  head.study = study_hash(study, version);
  head.points = study.space.count;
  head.varied = study.varied();
  head.figures.assign(study.kind->figures.begin(), study.kind->figures.end());
  return head;
}

Result<StoreHead> read_head(Database& database) {
  const auto rows = database.query("SELECT name, value FROM head");
  if (!rows) {
    return fail(
        Error(Mistake{database.file(),
                      {},
                      {},
                      "not a store of `orrery sweep`: " + rows.error().mistakes.front().expected}));
  }
  StoreHead head;
  for (const std::vector<Cell>& row : rows->rows) {
    const std::string name = to_string(row[0]);
    const std::string value = to_string(row[1]);
    if (name == "points") {
      const auto* count = std::get_if<std::int64_t>(row.data() + 1);
      head.points = count == nullptr ? 0 : static_cast<std::size_t>(*count);
    } else if (name == "varied") {
      head.varied = split(value);
    } else if (name == "figures") {
      head.figures = split(value);
    } else if (name == "kind") {
      head.kind = value;
    } else if (name == "version") {
      head.version = value;
    } else if (name == "study") {
      head.study = value;
    }
  }
  return head;
}

Result<Store> Store::open(const std::string& file, const StoreHead& head) {
  auto database = Database::open(file, Database::Mode::create);
  if (!database) {
    return fail(std::move(database.error()));
  }
  Store store(std::move(*database), head);
  if (auto ok = store.prepare(); !ok) {
    return fail(std::move(ok.error()));
  }
  return store;
}

Result<void> Store::prepare() {
  const auto tables = texts(database_, "SELECT name FROM sqlite_master WHERE type = 'table'");
  if (!tables) {
    return fail(tables.error());
  }
  if (tables->empty()) {
    // In one transaction, so that of two processes that find no tables one makes them.
    if (auto ok = database_.run("BEGIN IMMEDIATE; " + std::string(kHead) +
                                "; CREATE TABLE IF NOT EXISTS results (hash TEXT PRIMARY KEY" +
                                figure_columns() + ", error TEXT, checksum TEXT); COMMIT");
        !ok) {
      return ok;
    }
  }
  const auto there = read_head(database_);
  if (!there) {
    return fail(there.error());
  }
  const bool has_points = std::ranges::find(*tables, "points") != tables->end();
  const bool is_new = there->kind.empty() && !has_points;
  if (!is_new && (there->kind != head_.kind || there->figures != head_.figures)) {
    return fail(Error(Mistake{file(),
                              {},
                              there->kind,
                              "a store of kind " + head_.kind + " of this version; use another"}));
  }
  if (auto ok = is_new ? Result<void>() : check(); !ok) {
    return ok;
  }
  // With a log beside the file a transaction needs no wait for the disk, and a power failure takes
  // at most the last of them.
  if (auto ok = database_.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"); !ok) {
    return ok;
  }
  return there->study == head_.study ? Result<void>() : make_points();
}

/// Checks the store in one transaction, so that all is read as it was at one time.
Result<void> Store::check() {
  const auto has = has_checksums(database_);
  if (!has || !*has) {
    return has ? fail(Error(Mistake{file(), {}, {}, "a store with checksums; use another"}))
               : fail(has.error());
  }
  if (auto ok = database_.run("BEGIN"); !ok) {
    return ok;
  }
  auto verified = verify_store(database_);
  auto ended = database_.run("COMMIT");
  return verified ? ended : verified;
}

Result<void> Store::make_points() {
  if (auto ok = database_.run("BEGIN IMMEDIATE"); !ok) {
    return ok;
  }
  if (const auto there = read_head(database_); there && there->study == head_.study) {
    return database_.run("ROLLBACK");  // another process has just made them
  }
  auto made = database_.run(
      "DROP VIEW IF EXISTS rows; DROP TABLE IF EXISTS points; CREATE TABLE points (point INTEGER "
      "PRIMARY KEY, hash TEXT NOT NULL" +
      varied_columns("") + ", checksum TEXT); CREATE VIEW rows AS SELECT points.point" +
      varied_columns("points.") + figure_columns() +
      ", error, hash FROM points JOIN results USING (hash) ORDER BY point");
  if (made) {
    made = write_head(database_, head_);
  }
  return made ? database_.run("COMMIT") : made;
}

std::string Store::varied_columns(const std::string& prefix) const {
  return columns(head_.varied, prefix);
}

std::string Store::figure_columns() const {
  return columns(head_.figures, "");
}

Result<bool> Store::has(const std::string& hash) const {
  const std::lock_guard guard(*lock_);
  return database_.query("SELECT 1 FROM results WHERE hash = ?", {hash}).map([](const Rows& rows) {
    return !rows.rows.empty();
  });
}

Result<std::set<std::string>> Store::done() const {
  return texts(database_, "SELECT hash FROM results").map([](const std::vector<std::string>& all) {
    return std::set<std::string>(all.begin(), all.end());
  });
}

Result<std::set<std::size_t>> Store::points() const {
  return database_.query("SELECT point FROM rows").map([](const Rows& rows) {
    std::set<std::size_t> numbers;
    for (const std::vector<Cell>& row : rows.rows) {
      numbers.insert(static_cast<std::size_t>(std::get<std::int64_t>(row.front())));
    }
    return numbers;
  });
}

Result<void> Store::put(std::size_t point, const std::string& hash, const std::vector<Cell>& varied,
                        const Outcome* outcome) {
  std::vector<Cell> row{static_cast<std::int64_t>(point), hash};
  row.insert(row.end(), varied.begin(), varied.end());
  const auto places = [](std::size_t count) {
    std::string text = "?";
    for (std::size_t i = 1; i < count; ++i) {
      text += ", ?";
    }
    return "(" + text + ")";
  };
  row = with_checksum(std::move(row));
  const std::lock_guard guard(*lock_);
  if (auto ok = database_.run("BEGIN IMMEDIATE"); !ok) {
    return ok;
  }
  auto ok = database_.run("INSERT OR REPLACE INTO points VALUES " + places(row.size()), row);
  if (ok && outcome != nullptr) {
    std::vector<Cell> result{hash};
    result.insert(result.end(), outcome->figures.begin(), outcome->figures.end());
    result.push_back(outcome->error.empty() ? Cell() : Cell(outcome->error));
    result = with_checksum(std::move(result));
    ok = database_.run("INSERT OR REPLACE INTO results VALUES " + places(result.size()), result);
  }
  if (!ok) {
    (void)database_.run("ROLLBACK");
    return ok;
  }
  return database_.run("COMMIT");
}

Result<Rows> Store::rows() const {
  return database_.query("SELECT point" + varied_columns("") + figure_columns() +
                         ", error FROM rows ORDER BY point");
}

Result<void> Store::finish() {
  // Refused, without harm, while another process reads.
  (void)database_.run("PRAGMA wal_checkpoint(TRUNCATE)");
  (void)database_.run("PRAGMA journal_mode = DELETE");
  return {};
}

Result<void> Store::merge(const std::string& other) {
  // Opened once on its own: a killed process may have left its log beside the file, and what is
  // attached read-only could not be recovered.
  auto source = Database::open(other, Database::Mode::write);
  if (!source) {
    return fail(std::move(source.error()));
  }
  const auto head = read_head(*source);
  if (!head) {
    return fail(head.error());
  }
  if (head->kind != head_.kind || head->figures != head_.figures) {
    return fail(Error(
        Mistake{other, {}, head->kind, "a store of kind " + head_.kind + " of this version"}));
  }
  if (auto ok = verify_store(*source); !ok) {
    return ok;
  }
  const std::string points = head->study == head_.study
                                 ? "INSERT OR REPLACE INTO points SELECT * FROM other.points; "
                                 : "";
  if (auto ok = database_.run("ATTACH ? AS other", {other}); !ok) {
    return ok;
  }
  auto copied = database_.run(
      "BEGIN IMMEDIATE; INSERT OR REPLACE INTO results SELECT * FROM other.results; " + points +
      "COMMIT");
  if (!copied) {
    (void)database_.run("ROLLBACK");
  }
  auto detached = database_.run("DETACH other");
  return copied ? detached : copied;
}

Result<StoreHead> merge_stores(const std::vector<std::string>& files, const std::string& into) {
  Error mistakes;
  std::vector<StoreHead> heads;
  for (const std::string& file : files) {
    auto head = Database::open(file, Database::Mode::write).and_then([](Database database) {
      return read_head(database);
    });
    if (!head) {
      mistakes.add(std::move(head.error()));
    } else if (heads.push_back(std::move(*head)); heads.back().study != heads.front().study) {
      mistakes.add({file,
                    {},
                    heads.back().study,
                    "a store of the same study, version and inputs as the first"});
    }
  }
  if (!mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  auto store = Store::open(into, heads.front());
  if (!store) {
    return fail(std::move(store.error()));
  }
  for (const std::string& file : files) {
    if (auto ok = store->merge(file); !ok) {
      return fail(std::move(ok.error()));
    }
  }
  return store->finish().map([&] { return heads.front(); });
}

}  // namespace orrery::sweep
