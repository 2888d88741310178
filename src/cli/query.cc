// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/rows_output.h"
#include "study/sweep/checksums.h"
#include "study/sweep/database.h"

namespace orrery::cli {
namespace {

constexpr const char* kAll = "SELECT * FROM rows";

constexpr const char* kQueryExamples =
    "A store has one view, rows: point, the varied fields, the figures, error, hash. Names with\n"
    "dots stand in double quotes. Nothing is ever written to the store.\n"
    "Examples:\n"
    "  orrery query study.db\n"
    "  orrery query study.db 'SELECT \"plan.tp\", min(step_time_s) FROM rows GROUP BY 1'\n"
    "  orrery query study.db 'SELECT * FROM rows WHERE fits ORDER BY mfu DESC LIMIT 5' --csv\n"
    "  orrery query study.db --plot plan.tp,step_time_s --out tp.svg\n";

class Query : public Command {
 public:
  void declare(Options& options) override {
    options.positional("STORE", store_, "a store that `orrery sweep` has written");
    options.positional("SQL", sql_, "one statement of SQL; default: every row");
    options.flag("--csv", csv_, "print comma-separated values");
    options.flag("--json", json_, "print one JSON object");
    plot_.declare(options);
    options.footer(kQueryExamples);
  }

  Result<std::string> run(Error mistakes) override {
    if (store_.empty()) {
      mistakes.add(
          {"query", {}, {}, "missing; expected a store, which `orrery sweep` has written"});
    }
    if (json_ && csv_) {
      mistakes.add({"--csv", {}, {}, "contradicts --json; choose one"});
    }
    plot_.check(mistakes);
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    const auto rows = sweep::Database::open(store_, sweep::Database::Mode::read)
                          .and_then([&](sweep::Database store) { return read(store); });
    if (!rows) {
      return fail(rows.error());
    }
    if (plot_.given()) {
      if (auto written = plot_.write(*rows); !written) {
        return fail(std::move(written.error()));
      }
      if (!csv_ && !json_) {
        return std::string();
      }
    }
    return csv_ ? rows_csv(*rows) : json_ ? rows_json(*rows) : rows_table(*rows);
  }

 private:
  /// Returns the rows, of a store whose checksums are right.
  Result<sweep::Rows> read(sweep::Database& store) const {
    if (const auto has = sweep::has_checksums(store); has && *has) {
      if (auto ok = sweep::verify_store(store); !ok) {
        return fail(std::move(ok.error()));
      }
    } else if (has) {
      tell_notes({store_ + ": has no checksums, so damage is not noticed"});
    } else {
      return fail(Error(Mistake{store_,
                                {},
                                {},
                                "expected a store that `orrery sweep` has written (" +
                                    has.error().mistakes.front().expected + ")"}));
    }
    return store.query(sql_.value_or(kAll));
  }

  std::string store_;
  std::optional<std::string> sql_;
  RowsPlot plot_;
  bool csv_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_query() {
  return std::make_unique<Query>();
}

}  // namespace orrery::cli
