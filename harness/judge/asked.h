// The intermediate roundings that a program made before a value, found from that value alone. A compiler fuses
// differently if steps are observed, so the observed steps need not show what the requested program does. Only the
// value itself is left as evidence. A kernel keeps what it computes in wide registers and rounds what it stores, so the
// unknown is which uses of which intermediates read a rounded number. Sets of uses are tried until one reproduces the
// results bit by bit. The search starts from the roundings that compilers are known to keep (none; those of the
// operands and results of products; all) and changes one use at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/open_piece.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// `opened`: the instrumented program (harness/casefile/open.h). `value`: one of its values. `observed`: that value in
/// a run that observed nothing else. `on_the_way` of the answer gives words for each 16-bit intermediate: "rounded",
/// "unrounded", or both if either reproduces the results; or "split" and the steps that read it unrounded while others
/// read it rounded. Products in float32 or wider that are added are "contracted" if they are not rounded first. The
/// answer is empty if no tried set reproduces nearly all results, or if the expected rounding reproduces as many.
std::optional<Classification> JudgeAsAsked(const Case& opened,
                                           const std::map<std::string, TensorData>& inputs,
                                           const std::string& value, const TensorData& observed,
                                           const OpenPiece& open, OracleCounts* counts);

/// "rounds nothing but n and d on the way", from Classification::on_the_way; `plural`: "round ...".
std::string DescribeOnTheWay(const std::map<std::string, std::vector<std::string>>& on_the_way, bool plural);

}  // namespace ulpscope
