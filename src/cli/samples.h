// Statistics of repeated measurements. Pure; `values` is not empty.
#pragma once

#include <vector>

namespace pith {

double Median(std::vector<double> values);  // mean of the middle two for an even count
double Mean(const std::vector<double>& values);
double StandardDeviation(const std::vector<double>& values);  // of the sample (n - 1); 0 for one value

}  // namespace pith
