// What an unfinished run leaves for the next: a directory OUTPUT.unfinished with a file of tensors and one of reports per stage that is
// done. A stage is done when its reports are there, which is the last thing written; a kill at any moment loses at most the stage at work.
//
//   ASSIGN_OR_RETURN(auto checkpoint, Checkpoint::Open(output, identity, /*resume=*/true));
//   for (int64_t i = 0; i < num_stages; ++i) {
//     if (i < checkpoint->num_done()) { ASSIGN_OR_RETURN(StageResult result, checkpoint->Load(i)); ... continue; }
//     ... RETURN_IF_ERROR(checkpoint->Save(i, result));
//   }
//   checkpoint->Remove();
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json.h"
#include "compression/stage.h"

namespace pith {

// Not thread-safe; one process at a time (a lock on the directory, which goes with the object).
class Checkpoint {
 public:
  // "OUTPUT.unfinished"
  static std::string PathOf(const std::string& output);

  // `identity`: everything that decides the bytes of the artifact; whatever does not agree with that of an unfinished run is named.
  // Without `resume` an unfinished run with stages that are done is refused. Errors: kPermissionDenied when it is refused, differs in
  // identity, is at work in another process or the directory cannot be made; kDataLoss, kAborted.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& output, const OrderedJson& identity, bool resume);
  // Whether Open would refuse, as far as `known` tells: the part of the identity that is known so far (fields that it lacks are not
  // compared). Changes nothing. Errors: those of Open.
  static absl::Status Check(const std::string& output, const OrderedJson& known, bool resume);
  // Bytes of the files of an unfinished run; 0 without one.
  static uint64_t BytesOf(const std::string& output);
  ~Checkpoint();  // removes a directory in which no stage is done
  Checkpoint(const Checkpoint&) = delete;

  // Stages 0 .. num_done() - 1 are done.
  int64_t num_done() const { return num_done_; }
  // A path in the directory, for what the pipeline keeps between stages.
  std::string File(const std::string& name) const;

  // Errors: kDataLoss when a file is not as it was written.
  absl::StatusOr<StageResult> Load(int64_t stage) const;
  // The stage after those that are done.
  absl::Status Save(int64_t stage, const StageResult& result);
  // Deletes the directory.
  void Remove();

 private:
  Checkpoint(std::string path, int lock);
  absl::Status CheckIdentity(const OrderedJson& identity, bool whole, bool resume) const;
  std::string TensorsPath(int64_t stage) const;
  std::string ReportsPath(int64_t stage) const;

  std::string path_;
  int lock_;
  int64_t num_done_ = 0;
  bool keep_ = false;  // the directory, even without a stage that is done
};

}  // namespace pith
