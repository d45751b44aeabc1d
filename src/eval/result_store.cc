#include "eval/result_store.h"

#include <sqlite3.h>

#include <cstdlib>
#include <utility>

#include "base/status.h"

namespace pith {
namespace {

constexpr int kBusyMilliseconds = 10000;
// "pith" in ASCII: told apart from databases of other programs.
constexpr int kApplicationId = 0x70697468;

}  // namespace

absl::Status ResultStore::Fail(int code) const {
  const std::string message = db_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db_);
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT: return BadFileError(path_, ": expected a store of results, found a file that is none (", message, ")");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM: return CannotCreateError(path_, ": ", message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return UnavailableError(path_, ": held by another process");
    default: return IoError(path_, ": ", message);
  }
}

absl::Status ResultStore::Prepare(const char* sql, sqlite3_stmt** statement) {
  const int code = sqlite3_prepare_v2(db_, sql, -1, statement, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Fail(code);
}

absl::StatusOr<std::unique_ptr<ResultStore>> ResultStore::Open(const std::string& path) {
  auto store = std::unique_ptr<ResultStore>(new ResultStore(path));
  int code = sqlite3_open_v2(path.c_str(), &store->db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code != SQLITE_OK) return store->Fail(code);
  sqlite3_busy_timeout(store->db_, kBusyMilliseconds);
  int application = 0, tables = 0;
  const auto number = [](void* out, int, char** values, char**) {
    *static_cast<int*>(out) = values[0] == nullptr ? 0 : std::atoi(values[0]);
    return 0;
  };
  code = sqlite3_exec(store->db_, "PRAGMA application_id", number, &application, nullptr);
  if (code == SQLITE_OK) code = sqlite3_exec(store->db_, "SELECT count(*) FROM sqlite_master", number, &tables, nullptr);
  if (code != SQLITE_OK) return store->Fail(code);
  if (tables > 0 && application != kApplicationId)
    return BadFileError(path, ": expected a store of results, found a database of another program");
  code = sqlite3_exec(store->db_,
                      absl::StrCat("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA application_id = ", kApplicationId,
                                   "; CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
                          .c_str(),
                      nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return store->Fail(code);
  RETURN_IF_ERROR(store->Prepare("SELECT value FROM results WHERE key = ?1", &store->find_));
  RETURN_IF_ERROR(store->Prepare("INSERT OR REPLACE INTO results VALUES (?1, ?2)", &store->put_));
  return store;
}

ResultStore::~ResultStore() {
  sqlite3_finalize(find_);
  sqlite3_finalize(put_);
  sqlite3_close(db_);
}

absl::StatusOr<std::optional<Json>> ResultStore::Find(absl::string_view key) {
  sqlite3_bind_text(find_, 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
  const int code = sqlite3_step(find_);
  std::optional<Json> value;
  absl::Status status;
  if (code == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(find_, 0));
    auto parsed = ParseJson({text, static_cast<size_t>(sqlite3_column_bytes(find_, 0))});
    if (parsed.ok()) {
      value = *std::move(parsed);
    } else {
      status = Annotate(parsed.status(), absl::StrCat(path_, ": ", Printable(key)));
    }
  } else if (code != SQLITE_DONE) {
    status = Fail(code);
  }
  sqlite3_reset(find_);
  RETURN_IF_ERROR(status);
  return value;
}

absl::Status ResultStore::Put(absl::string_view key, const Json& value) {
  const std::string text = DumpJson(value);
  sqlite3_bind_text(put_, 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
  sqlite3_bind_text(put_, 2, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  const int code = sqlite3_step(put_);
  const absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : Fail(code);
  sqlite3_reset(put_);
  return status;
}

absl::StatusOr<int64_t> ResultStore::Size() {
  sqlite3_stmt* count = nullptr;
  RETURN_IF_ERROR(Prepare("SELECT count(*) FROM results", &count));
  const int code = sqlite3_step(count);
  const int64_t size = sqlite3_column_int64(count, 0);
  sqlite3_finalize(count);
  if (code != SQLITE_ROW) return Fail(code);
  return size;
}

}  // namespace pith
