// Finished pieces of a long measurement, kept as they come, so that an interrupted one goes on where it ended: keys with JSON values in
// one SQLite file. What is stored survives a kill at any moment. Source: https://www.sqlite.org/wal.html.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

struct sqlite3;
struct sqlite3_stmt;

namespace pith {

// Not thread-safe; two processes may share a file.
class ResultStore {
 public:
  // Creates the file when there is none; ":memory:" is kept nowhere. Errors: kDataLoss for a file that is no such store, kPermissionDenied
  // when it cannot be created, kUnavailable when another process holds it for more than ten seconds.
  static absl::StatusOr<std::unique_ptr<ResultStore>> Open(const std::string& path);
  ~ResultStore();
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;

  absl::StatusOr<std::optional<Json>> Find(absl::string_view key);
  // Replaces what the key had.
  absl::Status Put(absl::string_view key, const Json& value);
  absl::StatusOr<int64_t> Size();

 private:
  explicit ResultStore(std::string path) : path_(std::move(path)) {}
  absl::Status Fail(int code) const;
  absl::Status Prepare(const char* sql, sqlite3_stmt** statement);

  std::string path_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt *find_ = nullptr, *put_ = nullptr;
};

}  // namespace pith
