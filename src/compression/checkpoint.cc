#include "compression/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "artifact/safetensors.h"
#include "artifact/safetensors_writer.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr char kSuffix[] = ".unfinished";
constexpr char kIdentityName[] = "run.json";

// "recipe.damping" of the first thing that differs, with both values; empty: none. Unless `whole`, fields that only they have do not
// differ.
std::string FirstDifference(const Json& ours, const Json& theirs, const std::string& at, bool whole) {
  if (ours.is_object() && theirs.is_object()) {
    for (const auto& [key, value] : ours.items()) {
      const std::string path = at.empty() ? key : absl::StrCat(at, ".", key);
      const Json* other = FindMember(theirs, key);
      const std::string difference = FirstDifference(value, other == nullptr ? Json() : *other, path, whole);
      if (!difference.empty()) return difference;
    }
    return !whole || ours.size() == theirs.size() ? "" : absl::StrCat(at, " has other fields");
  }
  return ours == theirs ? "" : absl::StrCat(at, " was ", Printable(DumpJson(theirs), 120), " and is ", Printable(DumpJson(ours), 120));
}

// Of a directory that is there.
absl::StatusOr<int> Lock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return CannotCreateError(Printable(path, 500), ": expected a directory, found: ", std::strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return CannotCreateError(Printable(path, 500), ": expected an unfinished run, found one that another process is working on");
}

template <typename Report>
absl::Status ParseList(const Json& json, absl::string_view key, absl::StatusOr<Report> (*parse)(const Json&), std::vector<Report>& out) {
  const Json* list = FindMember(json, key);
  if (list == nullptr || !list->is_array()) return BadFileError(key, ": expected a list");
  for (const Json& entry : *list) {
    ASSIGN_OR_RETURN(Report report, parse(entry));
    out.push_back(std::move(report));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Checkpoint::PathOf(const std::string& output) { return absl::StrCat(absl::StripSuffix(output, "/"), kSuffix); }

std::string Checkpoint::File(const std::string& name) const { return JoinPath(path_, name); }
std::string Checkpoint::TensorsPath(int64_t stage) const { return File(absl::StrFormat("stage-%05d.safetensors", stage)); }
std::string Checkpoint::ReportsPath(int64_t stage) const { return File(absl::StrFormat("stage-%05d.json", stage)); }

Checkpoint::Checkpoint(std::string path, int lock) : path_(std::move(path)), lock_(lock) {
  while (FileExists(ReportsPath(num_done_))) ++num_done_;
}

absl::Status Checkpoint::CheckIdentity(const OrderedJson& identity, bool whole, bool resume) const {
  if (num_done_ == 0) return absl::OkStatus();
  if (!resume) {
    return CannotCreateError(Printable(path_, 500), ": expected no unfinished run, found one with ", num_done_,
                             " layers done; --resume continues it, deleting the directory forgets it");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(File(kIdentityName)));
  const absl::StatusOr<Json> theirs = ParseJson(text);
  if (!theirs.ok()) return Annotate(theirs.status(), File(kIdentityName));
  const auto ours = ParseJson(DumpJson(identity));
  const std::string difference = FirstDifference(*ours, *theirs, "", whole);
  if (difference.empty()) return absl::OkStatus();
  return CannotCreateError(Printable(path_, 500),
                           ": expected a run of the same model, recipe and data to continue, found another: ", difference);
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& output, const OrderedJson& identity, bool resume) {
  const std::string path = PathOf(output);
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (error) return CannotCreateError(Printable(path, 500), ": expected to make this directory, found: ", error.message());
  ASSIGN_OR_RETURN(const int lock, Lock(path));
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint(path, lock));
  RETURN_IF_ERROR(checkpoint->CheckIdentity(identity, /*whole=*/true, resume));
  if (checkpoint->num_done_ > 0) return checkpoint;
  RETURN_IF_ERROR(WriteFileAtomically(checkpoint->File(kIdentityName), DumpJson(identity, 2) + "\n"));
  return checkpoint;
}

absl::Status Checkpoint::Check(const std::string& output, const OrderedJson& known, bool resume) {
  const std::string path = PathOf(output);
  if (!IsDirectory(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int lock, Lock(path));
  Checkpoint found(path, lock);
  const absl::Status status = found.CheckIdentity(known, /*whole=*/false, resume);
  found.keep_ = true;
  return status;
}

uint64_t Checkpoint::BytesOf(const std::string& output) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(PathOf(output), error)) {
    const uint64_t size = entry.file_size(error);
    if (!error) bytes += size;
  }
  return bytes;
}

Checkpoint::~Checkpoint() {
  if (num_done_ == 0 && !keep_) Remove();
  close(lock_);
}

absl::StatusOr<StageResult> Checkpoint::Load(int64_t stage) const {
  const std::string path = ReportsPath(stage);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) return Annotate(json.status(), path);
  StageResult result;
  RETURN_IF_ERROR(Annotate(ParseList(*json, "layers", ParseLayerReport, result.layers), path));
  RETURN_IF_ERROR(Annotate(ParseList(*json, "scaled_inputs", ParseScaledInputReport, result.scaled_inputs), path));
  RETURN_IF_ERROR(Annotate(ParseList(*json, "kv_scales", ParseKvScaleReport, result.kv_scales), path));
  if (const Json* block = FindMember(*json, "block"); block != nullptr && !block->is_null()) {
    ASSIGN_OR_RETURN(result.block, ParseBlockReport(*block));
  }
  ASSIGN_OR_RETURN(const std::string expected, GetString(*json, "sha256"));
  ASSIGN_OR_RETURN(const std::string found, Sha256OfFile(TensorsPath(stage)));
  if (found != expected) return BadFileError(TensorsPath(stage), ": expected SHA-256 ", expected, ", found ", found);
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(TensorsPath(stage)));
  for (const SafetensorsTensor& entry : file.tensors()) {
    ASSIGN_OR_RETURN(const TensorView view, file.View(entry));
    Tensor tensor(view.dtype, view.shape);
    std::memcpy(tensor.data(), view.data, static_cast<size_t>(view.num_bytes()));
    result.tensors.push_back({entry.name, std::move(tensor)});
  }
  return result;
}

absl::Status Checkpoint::Save(int64_t stage, const StageResult& result) {
  if (stage != num_done_) return BugError(path_, ": expected stage ", num_done_, " to be done next, found ", stage);
  std::vector<TensorSpec> specs;
  for (const NamedTensor& entry : result.tensors) specs.push_back({entry.name, entry.tensor.dtype(), entry.tensor.shape()});
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(TensorsPath(stage), specs, {}));
  for (const NamedTensor& entry : result.tensors) RETURN_IF_ERROR(writer.Write(entry.name, entry.tensor.view().bytes()));
  ASSIGN_OR_RETURN(const std::string sha256, writer.Commit());
  const OrderedJson reports = {{"sha256", sha256},
                               {"block", result.block.has_value() ? ToJson(*result.block) : OrderedJson(nullptr)},
                               {"scaled_inputs", ToJson(result.scaled_inputs)},
                               {"kv_scales", ToJson(result.kv_scales)},
                               {"layers", ToJson(result.layers)}};
  RETURN_IF_ERROR(WriteFileAtomically(ReportsPath(stage), DumpJson(reports, 1) + "\n"));
  ++num_done_;
  return absl::OkStatus();
}

void Checkpoint::Remove() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace pith
