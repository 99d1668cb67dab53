// The fields of a tensor: its layout and its elements.

#include "harness/casefile/fields.h"
#include "harness/model/cross.h"
#include "harness/model/probe.h"
#include "harness/num/dtype.h"
#include "harness/num/float_format.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

using enum Presence;
using Kind = Type::Kind;

/// A map of named parameters.
Type ParametersType(std::string_view what, std::vector<Field> fields) {
  return {.kind = Kind::kMap, .what = what, .fields = std::move(fields)};
}

const Type& Values() {
  // Lists in lists, as deep as tensors go; the decoder compares the nesting with the shape.
  static Type list{.kind = Kind::kList,
                   .what = "a list of numbers (flat, or nested as the shape)",
                   .definition = "values",
                   .min_items = 1};
  static const Type element{
      .kind = Kind::kEither, .what = "a number or a list of numbers", .scalar = &NumberType(), .list = &list};
  list.item = &element;
  return list;
}

const Type& ProbeFillType() {
  static const Type family{.kind = Kind::kWord, .what = "a probe", .words = ProbeFamilies()};
  static const Type role{.kind = Kind::kWord, .what = "a role", .words = {"a", "b", "addend"}};
  static const Type length{.kind = Kind::kInteger, .what = "a length", .low = 1, .high = int64_t{1} << 28};
  static const Type probe_parameters = ParametersType(
      "the parameters of probe",
      {{"name", &family, kRequired, "which dot products"},
       {"role", &role, kOptional, "the operand whose values these are: a (without), b, or what is added"},
       {"dim", &IntegerType(), kOptional, "dimension that a dot product lies along (-1; for role b -2)"},
       {"k", &length, kOptional, "for role addend: terms of the sums"}});
  static const Type type{
      .kind = Kind::kEither, .what = "a probe", .scalar = &family, .map = &probe_parameters};
  return type;
}

const Type& CrossFillType() {
  static const Type crossing{.kind = Kind::kWord, .what = "a crossed probe", .words = CrossNames()};
  static const Type side{.kind = Kind::kWord, .what = "a role", .words = {"a", "b", "sum"}};
  static const Type line{.kind = Kind::kInteger, .what = "a line", .low = 0, .high = int64_t{1} << 28};
  static const Type type = ParametersType(
      "the parameters of cross",
      {{"name", &crossing, kRequired, "which dot products"},
       {"role", &side, kOptional, "the operand whose values these are: a (without) or b; sum: of no product"},
       {"dim", &IntegerType(), kOptional, "dimension that a dot product lies along (-1; for role b -2)"},
       {"from", &line, kOptional, "the first line (0)"}});
  return type;
}

const Type& RecordFillType() {
  static const Type type = ParametersType(
      "the parameters of record", {{"name", &NameType(), kRequired, "a file of backends/recorded/data"},
                                   {"tensor", &NameType(), kRequired, "a tensor of it"}});
  return type;
}

const Type& FileFillType() {
  static const Type tensor_file{
      .kind = Kind::kText, .what = "a file of tensors", .pattern = &TensorFilePattern()};
  static const Type digest{.kind = Kind::kText, .what = "a digest", .pattern = &DigestPattern()};
  static const Type type = ParametersType(
      "the parameters of file", {{"path", &tensor_file, kRequired, "a safetensors file beside the case file"},
                                 {"tensor", &NameType(), kRequired, "a tensor of it"},
                                 {"sha256", &digest, kRequired, "of the tensor's bytes"}});
  return type;
}

const Type& FillMap() {
  static const Type exponent{.kind = Kind::kInteger, .what = "an exponent of 2", .low = -1100, .high = 1100};
  static const Type format{.kind = Kind::kWord, .what = "a floating format", .words = [] {
                             std::vector<std::string> narrower;
                             for (const FloatFormat* each : AllFormats()) {
                               if (each != &Binary64()) narrower.emplace_back(each->name);
                             }
                             return narrower;
                           }()};
  static const Type normal = ParametersType("the parameters of normal",
                                            {{"scale", &NumberType(), kOptional, "standard deviation (1)"},
                                             {"mean", &NumberType(), kOptional, "mean (0)"}});
  static const Type uniform =
      ParametersType("the parameters of uniform", {{"low", &NumberType(), kOptional, "smallest (-1)"},
                                                   {"high", &NumberType(), kOptional, "not reached (1)"}});
  static const Type integers =
      ParametersType("the parameters of integers", {{"low", &IntegerType(), kRequired, "smallest"},
                                                    {"high", &IntegerType(), kRequired, "largest, reached"}});
  static const Type positive =
      ParametersType("the parameters of positive", {{"scale", &NumberType(), kOptional, "largest (1)"}});
  static const Type wide = ParametersType("the parameters of wide_exponent",
                                          {{"low", &exponent, kRequired, "smallest exponent of 2"},
                                           {"high", &exponent, kRequired, "largest exponent of 2"}});
  static const Type lattice =
      ParametersType("the parameters of lattice",
                     {{"mul", &IntegerType(), kRequired, "element i is ((i*mul + add) mod mod - sub) / div"},
                      {"add", &IntegerType(), kRequired, "see mul"},
                      {"mod", &IntegerType(), kRequired, "see mul"},
                      {"sub", &IntegerType(), kOptional, "see mul (0)"},
                      {"div", &IntegerType(), kOptional, "see mul (1)"}});
  static const Type full =
      ParametersType("the parameters of full", {{"value", &NumberType(), kRequired, "every element"}});
  static const Type arange =
      ParametersType("the parameters of arange", {{"start", &NumberType(), kOptional, "element 0 (0)"},
                                                  {"step", &NumberType(), kOptional, "difference (1)"}});
  static const Type ties = ParametersType(
      "the parameters of ties", {{"format", &format, kRequired, "the narrower format whose ties they are"}});
  static const Type type{
      .kind = Kind::kMap,
      .what = "a fill with parameters",
      .fields = {{"normal", &normal, kOptional, "normal deviates"},
                 {"uniform", &uniform, kOptional, "uniform in [low, high)"},
                 {"integers", &integers, kOptional, "integers from low to high"},
                 {"positive", &positive, kOptional, "uniform in (0, scale]"},
                 {"wide_exponent", &wide, kOptional,
                  "random significands, exponents uniform from low to high"},
                 {"lattice", &lattice, kOptional,
                  "an integer formula: float32 dot products exact in any order"},
                 {"values", &Values(), kOptional, "the elements themselves, row-major"},
                 {"full", &full, kOptional, "one value everywhere"},
                 {"arange", &arange, kOptional, "start, start + step, ..."},
                 {"ties", &ties, kOptional, "half-way between two values of a narrower format"},
                 {"probe", &ProbeFillType(), kOptional, "dot products that show how they were computed"},
                 {"cross", &CrossFillType(), kOptional,
                  "the same for every row of the one and column of the other operand"},
                 {"record", &RecordFillType(), kOptional, "inputs of recorded hardware, row by row"},
                 {"file", &FileFillType(), kOptional, "a tensor beside the case file"}},
      .exactly_keys = 1};
  return type;
}

const Type& Fill() {
  static const Type word{
      .kind = Kind::kWord,
      .what = "a fill",
      .words = {"normal", "uniform", "positive", "zeros", "ones", "arange", "subnormals", "ties"}};
  static const Type type{
      .kind = Kind::kEither, .what = "a fill", .definition = "fill", .scalar = &word, .map = &FillMap()};
  return type;
}

const Type& Layout() {
  static const Type word{.kind = Kind::kWord, .what = "a layout", .words = {"non_contiguous"}};
  static const Type stride{
      .kind = Kind::kInteger, .what = "a stride in elements", .low = 1, .high = int64_t{1} << 28};
  static const Type strides{
      .kind = Kind::kList, .what = "a list of strides", .item = &stride, .max_items = 16};
  static const Type dims{
      .kind = Kind::kList, .what = "two dimensions", .item = &IntegerType(), .min_items = 2, .max_items = 2};
  static const Type map{
      .kind = Kind::kMap,
      .what = "a layout",
      .fields = {{"strides", &strides, kOptional, "in elements, one per dimension"},
                 {"transpose", &dims, kOptional, "stored with these two dimensions exchanged"}},
      .exactly_keys = 1};
  static const Type type{.kind = Kind::kEither, .what = "a layout", .scalar = &word, .map = &map};
  return type;
}

const Type& Tensor() {
  static const Type type{
      .kind = Kind::kMap,
      .what = "a tensor",
      .definition = "tensor",
      .fields = {{"dtype", &DTypeType(), kRequired, "element type"},
                 {"shape", &ShapeType(), kRequired, "extents; [] is a 0-dim tensor"},
                 {"layout", &Layout(), kOptional, "how it lies in memory; contiguous without"},
                 {"requires_grad", &BooleanType(), kOptional, "a leaf whose gradient is computed"},
                 {"fill", &Fill(), kRequired, "what its elements are"}}};
  return type;
}

}  // namespace

const Type& TensorsType() {
  static const Type type{
      .kind = Kind::kMap, .what = "a map of tensors", .rest = &Tensor(), .rest_key = &NamePattern()};
  return type;
}

}  // namespace ulpscope
