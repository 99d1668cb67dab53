// Tiles of plain sums.
#include "oracles/plain_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracles/models.h"

namespace ulpscope {

RawMatrices::RawMatrices(const Plan& plan, const std::map<std::string, TensorData>& inputs,
                         const PlanNode& node)
    : plan_(plan), node_(node), sizes_(node.Get<Contraction>()), tiles_((sizes_.n + kTile - 1) / kTile) {
  for (size_t i = 0; i < 2; ++i) {
    const PlanNode& root = plan.at(plan.Root(node.args[i]));
    const TensorRead* read = root.If<TensorRead>();
    if (read != nullptr)
      data_[i] = &inputs.at(read->tensor);
    else
      constant_[i] = root.Get<DoubleNumber>().value;
    const FloatFormat* format = read != nullptr ? FormatOf(root.dtype) : nullptr;
    bits_ += format == nullptr ? 53 : format->precision;
    least_normal_[i] = format == nullptr ? 0 : std::ldexp(1.0, format->emin);
  }
  rows_.resize(static_cast<size_t>(rows()));
  columns_.resize(static_cast<size_t>(tiles()));
}

double RawMatrices::Read(int operand, int64_t position) const {
  const auto which = static_cast<size_t>(operand);
  if (data_[which] == nullptr) return constant_[which];
  return data_[which]->At(plan_.RootIndex(node_.args[which], position));
}

void RawMatrices::Measure(Strip* strip) const {
  double least = kInf, largest = 0;
  for (const double value : strip->values) {
    const double magnitude = std::fabs(value);
    if (!(magnitude <= largest)) largest = std::isnan(magnitude) ? kInf : magnitude;
    if (magnitude > 0 && magnitude < least) least = magnitude;
  }
  strip->least = least;
  strip->largest = largest;
}

const RawMatrices::Strip& RawMatrices::Row(int64_t row) {
  auto& strip = rows_[static_cast<size_t>(row)];
  if (strip) return *strip;
  strip = std::make_unique<Strip>();
  strip->values.reserve(static_cast<size_t>(sizes_.k));
  for (int64_t k = 0; k < sizes_.k; ++k) strip->values.push_back(Read(0, row * sizes_.k + k));
  strip->zeros[0] = std::ranges::count(strip->values, 0.0);
  Measure(strip.get());
  return *strip;
}

const RawMatrices::Strip& RawMatrices::Tile(int64_t tile) {
  auto& strip = columns_[static_cast<size_t>(tile)];
  if (strip) return *strip;
  strip = std::make_unique<Strip>();
  const int64_t batch = tile / tiles_, first = tile % tiles_ * kTile;
  strip->values.resize(static_cast<size_t>(sizes_.k * kTile));
  for (int64_t k = 0; k < sizes_.k; ++k) {
    for (int64_t j = 0; j < kTile && first + j < sizes_.n; ++j) {
      const double value = Read(1, (batch * sizes_.k + k) * sizes_.n + first + j);
      strip->values[static_cast<size_t>(k * kTile + j)] = value;
      if (value == 0) ++strip->zeros[static_cast<size_t>(j)];
    }
  }
  Measure(strip.get());
  return *strip;
}

int64_t RawMatrices::LeastProducts(int64_t index) {
  return sizes_.k - Row(RowOf(index)).zeros[0] -
         Tile(TileOf(index)).zeros[static_cast<size_t>(ColumnOf(index))];
}

const std::vector<int16_t>& RawMatrices::LowestOf(Strip* strip) {
  if (strip->lowest.size() == strip->values.size()) return strip->lowest;
  strip->lowest.reserve(strip->values.size());
  for (const double value : strip->values)
    strip->lowest.push_back(static_cast<int16_t>(ExponentOfLowestBit(value)));
  return strip->lowest;
}

int RawMatrices::LowestBit(int64_t index) {
  const int64_t row = RowOf(index), tile = TileOf(index);
  const auto block = static_cast<size_t>(row * tiles_ + tile % tiles_);
  if (lowest_.empty()) {
    lowest_.resize(static_cast<size_t>(rows() * tiles_));
    has_lowest_.resize(lowest_.size());
  }
  std::array<int16_t, kTile>& lowest = lowest_[block];
  if (!has_lowest_[block]) {
    Row(row);
    Tile(tile);
    const auto &left = LowestOf(rows_[static_cast<size_t>(row)].get()),
               &right = LowestOf(columns_[static_cast<size_t>(tile)].get());
    lowest.fill(std::numeric_limits<int16_t>::max());
    for (size_t k = 0; k < left.size(); ++k) {
      for (size_t j = 0; j < lowest.size(); ++j)
        lowest[j] = std::min(lowest[j], static_cast<int16_t>(left[k] + right[k * lowest.size() + j]));
    }
    has_lowest_[block] = true;
  }
  return lowest[static_cast<size_t>(ColumnOf(index))];
}

bool RawMatrices::HasSubnormals(int64_t index, const std::array<RoundSpec, 2>& in) {
  const auto least_normal = [&](size_t operand) {
    const FloatFormat* rounded = in[operand].format;
    const double least = rounded == nullptr ? 0 : std::ldexp(1.0, rounded->emin);
    return std::max(least, least_normal_[operand]);
  };
  return Row(RowOf(index)).least < least_normal(0) || Tile(TileOf(index)).least < least_normal(1);
}

PlainSums::PlainSums(std::shared_ptr<RawMatrices> raw, const std::array<RoundSpec, 2>& in,
                     const RoundSpec& prod)
    : raw_(std::move(raw)), in_(in), prod_(prod) {
  // The same passes as in Multiply() of split operands.
  const int passes = std::max(in[0].passes, in[1].passes), most = passes == 3 ? 1 : passes == 6 ? 2 : 4;
  if (in[0].pieces == 1 && in[1].pieces == 1) {
    passes_.emplace_back(0, 0);
  } else {
    for (int weight = most; weight >= 0; --weight) {
      for (int i = std::max(0, weight - 2); i <= std::min(2, weight); ++i) {
        if (i < in[0].pieces && weight - i < in[1].pieces) passes_.emplace_back(i, weight - i);
      }
    }
  }
  // A product and n additions, each off by 2^-53 of its result; as much again for the sum that this one represents.
  const double terms = static_cast<double>(raw_->k()) * static_cast<double>(passes_.size());
  relative_ = (2 * terms + 16) * 0x1p-53 * (1 + 0x1p-20);
  rounded_[0].resize(static_cast<size_t>(raw_->rows()));
  rounded_[1].resize(static_cast<size_t>(raw_->tiles()));
  const auto blocks = static_cast<size_t>(raw_->rows() * raw_->tiles_of_a_row());
  known_.resize(blocks, Known::kNo);
  place_.resize(blocks);
}

const PlainSums::Pieces& PlainSums::Rounded(int operand, int64_t which) {
  auto& known = rounded_[static_cast<size_t>(operand)][static_cast<size_t>(which)];
  if (known) return *known;
  known = std::make_unique<Pieces>();
  const Strip& raw = operand == 0 ? raw_->Row(which) : raw_->Tile(which);
  const RoundSpec& spec = in_[static_cast<size_t>(operand)];
  known->usable = std::isfinite(raw.largest);
  if (!known->usable || (spec.none() && spec.pieces == 1)) return *known;
  RoundSpec one = spec;
  one.pieces = 1;
  std::vector<double> rest = raw.values;
  for (int piece = 0; piece < spec.pieces; ++piece) {
    Strip& part = known->parts.emplace_back();
    part.values.resize(rest.size());
    part.least = kInf;
    for (size_t i = 0; i < rest.size(); ++i) {
      const double value = one.Apply(rest[i]), magnitude = std::fabs(value);
      part.values[i] = value;
      rest[i] -= value;
      if (magnitude > 0) part.least = std::min(part.least, magnitude);
      part.largest = std::max(part.largest, magnitude);
    }
    known->usable = known->usable && std::isfinite(part.largest);
  }
  return *known;
}

bool PlainSums::Compute(int64_t row, int64_t tile, std::array<Sum, RawMatrices::kTile>* sums) {
  constexpr auto kTile = static_cast<size_t>(RawMatrices::kTile);
  const Pieces &left = Rounded(0, row), &right = Rounded(1, tile);
  if (!left.usable || !right.usable) return false;
  std::array<double, kTile> sum{}, magnitude{};
  for (const auto& [x, y] : passes_) {
    const Strip& a = left.parts.empty() ? raw_->Row(row) : left.parts[x];
    const Strip& b = right.parts.empty() ? raw_->Tile(tile) : right.parts[y];
    if (a.largest == 0 || b.largest == 0) continue;
    if (a.least * b.least < 0x1p-960) return false;
    const auto count = static_cast<size_t>(raw_->k());
    const double *left_of = a.values.data(), *right_of = b.values.data();
    if (prod_.format == nullptr) {
      for (size_t k = 0; k < count; ++k) {
        for (size_t j = 0; j < kTile; ++j) {
          const double product = left_of[k] * right_of[k * kTile + j];
          sum[j] += product;
          magnitude[j] += std::fabs(product);
        }
      }
    } else {
      // One that binary64 does not hold would be rounded twice.
      if (raw_->bits() > 53) return false;
      if (prod_.format == &Binary32() && prod_.rounding == Rounding::kNearestEven &&
          prod_.subnormals == Subnormals::kGradual && !prod_.drops_operands()) {
        for (size_t k = 0; k < count; ++k) {
          for (size_t j = 0; j < kTile; ++j) {
            const double rounded = static_cast<float>(left_of[k] * right_of[k * kTile + j]);
            sum[j] += rounded;
            magnitude[j] += std::fabs(rounded);
          }
        }
        continue;
      }
      for (size_t k = 0; k < count; ++k) {
        for (size_t j = 0; j < kTile; ++j) {
          const double product = left_of[k] * right_of[k * kTile + j];
          const double rounded = prod_.Apply(product);
          sum[j] += rounded;
          magnitude[j] += std::fabs(rounded);
        }
      }
    }
  }
  for (size_t j = 0; j < kTile; ++j) {
    if (!(magnitude[j] < 0x1p1000)) return false;
    (*sums)[j] = {.sum = sum[j], .magnitude = magnitude[j]};
  }
  return true;
}

const PlainSums::Sum* PlainSums::At(int64_t index) {
  const int64_t row = raw_->RowOf(index), tile = raw_->TileOf(index);
  const auto block = static_cast<size_t>(row * raw_->tiles_of_a_row() + tile % raw_->tiles_of_a_row());
  if (known_[block] == Known::kNo) {
    std::array<Sum, RawMatrices::kTile> sums;
    known_[block] = Compute(row, tile, &sums) ? Known::kYes : Known::kCannot;
    if (known_[block] == Known::kYes) {
      place_[block] = static_cast<uint32_t>(sums_.size());
      sums_.push_back(sums);
    }
  }
  if (known_[block] == Known::kCannot) return nullptr;
  return &sums_[place_[block]][static_cast<size_t>(raw_->ColumnOf(index))];
}

bool PlainSums::IsExact(int64_t index, const AccSpec& acc) {
  if (acc.block > 0 && raw_->HasSubnormals(index, in_)) return false;
  const Sum& sum = *At(index);
  // Sums of binary64, which has as many bits as any accumulator, are exact then too.
  const double most = (std::fabs(sum.sum) + sum.magnitude) / 2 * (1 + 2 * relative_);
  return SumsExactly(acc, raw_->LowestBit(index), most);
}

}  // namespace ulpscope
