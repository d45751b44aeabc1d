// Bit allocation under a byte budget: which scheme each group of modules gets, so that the model loses least. A pure function; items are
// groups of modules that must share a scheme (q, k and v; gate and up), their expected losses come from whoever measured them.
//
//   minimize   sum_i loss_i(o_i)   subject to   sum_i bytes_i(o_i) <= budget,   one option o_i per item
//
// This is a multiple-choice knapsack. It is solved by dynamic programming over bytes in units of their greatest common divisor, which is
// exact: bytes of layers are multiples of large numbers. Where that table would be too large, the unit is coarser and bytes are rounded up
// to it, and the better of that and the Lagrangian solution is taken. The latter follows the lower convex hulls of (bytes, loss): the
// options that minimize loss + price * bytes for the smallest price that meets the budget; its relaxation bounds the optimum from below.
// Source: losses that add up over layers: HAWQ-V2 (Dong et al. 2019, arXiv 1911.03852, section 3), as an integer program: HAWQ-V3 (Yao et
// al. 2020, arXiv 2011.10680, section 3.4); Lagrangian allocation: Shoham and Gersho 1988, "Efficient bit allocation for an arbitrary set
// of quantizers"; the knapsack: Kellerer, Pferschy and Pisinger 2004, "Knapsack Problems", chapter 11.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pith {

struct AllocationOption {
  int scheme = 0;     // the caller's index
  int64_t bytes = 0;  // >= 0, of all modules of the item
  double loss = 0;    // finite, in any unit that adds up over items
};

struct AllocationItem {
  std::string name;                       // for messages
  std::vector<AllocationOption> options;  // 1 to 255, in any order
};

struct Allocation {
  std::vector<int> choice;  // per item: index into its options
  int64_t bytes = 0;        // <= budget
  double loss = 0;
  double lower_bound = 0;  // no choice within the budget has a smaller loss (up to rounding)
  double price = 0;        // loss that one more byte would save, at the Lagrangian solution; 0 when the budget does not bind
  int64_t unit_bytes = 0;  // of the table
  bool exact = false;      // loss is the optimum; else it is at most the optimum of budget - num_items * unit_bytes
};

struct AllocationLimits {
  int64_t max_cells = 1 << 16;                  // of a row of the table
  int64_t max_table_bytes = int64_t{64} << 20;  // one byte per item and cell
};

// Among choices of equal loss one with the fewest bytes wins, and the same input gives the same result.
// A larger budget never gives a larger loss (up to rounding of the sums), and the loss is never larger than the Lagrangian solution's.
// O(sum of options * cells) time: a fraction of a second for 300 items of 8 options. Thread-safe.
// Errors: kInvalidArgument for an item without options or with more than 255, negative or huge bytes, a loss that is not finite, and a
// budget below the smallest possible size, which the message names.
absl::StatusOr<Allocation> AllocateBits(absl::Span<const AllocationItem> items, int64_t budget_bytes, const AllocationLimits& limits = {});

// The Lagrangian solution alone, in O(options log options).
absl::StatusOr<Allocation> AllocateBitsByPrice(absl::Span<const AllocationItem> items, int64_t budget_bytes);

}  // namespace pith
