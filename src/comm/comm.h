// Collective operations between the ranks of one model instance (tensor parallelism): one process now, MPI or NCCL behind the same face.
//
// Every rank calls the same operations in the same order. Errors are for good: after one, the group is unusable and every later call
// returns an error too, since the ranks no longer agree on what has been exchanged. Sums add the ranks' values in rank order, so a result
// is the same bits on every rank and in every run with the same number of ranks. Not thread-safe: one caller per rank.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace pith {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // [0, size)
  virtual int size() const = 0;  // >= 1

  // Replaces `values` with the element-wise sum over all ranks. Every rank passes the same length.
  // Errors: kUnavailable when a rank is gone.
  virtual absl::Status AllReduceSum(absl::Span<float> values) = 0;
  // Replaces `bytes` with those of rank `root`. Every rank passes the same length and root.
  // Errors: kInvalidArgument for a root outside [0, size), before anything is exchanged (the group stays usable); kUnavailable.
  virtual absl::Status Broadcast(absl::Span<uint8_t> bytes, int root) = 0;
  // Returns when every rank has called it. Errors: kUnavailable.
  virtual absl::Status Barrier() = 0;
};

// The group of one rank: every operation is the identity.
std::unique_ptr<Communicator> SingleProcess();

}  // namespace pith
