// The field table of case files and of the deviations file.
#include "harness/casefile/fields.h"

#include <map>

#include "harness/model/cross.h"
#include "harness/model/probe.h"
#include "harness/num/dtype.h"
#include "harness/num/float_format.h"
#include "harness/words/knobs.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

using enum Presence;
using Kind = Type::Kind;

const Type& Anything() {
  static const Type type{.kind = Kind::kAny, .what = "a value"};
  return type;
}
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
  static const Type family{.kind = Kind::kWord, .what = "a probe", .words = ProbeFamilies()};
  static const Type role{.kind = Kind::kWord, .what = "a role", .words = {"a", "b", "addend"}};
  static const Type length{.kind = Kind::kInteger, .what = "a length", .low = 1, .high = int64_t{1} << 28};
  static const Type probe_parameters = ParametersType(
      "the parameters of probe",
      {{"name", &family, kRequired, "which dot products"},
       {"role", &role, kOptional, "the operand whose values these are: a (without), b, or what is added"},
       {"dim", &IntegerType(), kOptional, "dimension that a dot product lies along (-1; for role b -2)"},
       {"k", &length, kOptional, "for role addend: terms of the sums"}});
  static const Type probe{
      .kind = Kind::kEither, .what = "a probe", .scalar = &family, .map = &probe_parameters};
  static const Type crossing{.kind = Kind::kWord, .what = "a crossed probe", .words = CrossNames()};
  static const Type side{.kind = Kind::kWord, .what = "a role", .words = {"a", "b", "sum"}};
  static const Type line{.kind = Kind::kInteger, .what = "a line", .low = 0, .high = int64_t{1} << 28};
  static const Type cross = ParametersType(
      "the parameters of cross",
      {{"name", &crossing, kRequired, "which dot products"},
       {"role", &side, kOptional, "the operand whose values these are: a (without) or b; sum: of no product"},
       {"dim", &IntegerType(), kOptional, "dimension that a dot product lies along (-1; for role b -2)"},
       {"from", &line, kOptional, "the first line (0)"}});
  static const Type record = ParametersType(
      "the parameters of record", {{"name", &NameType(), kRequired, "a file of backends/recorded/data"},
                                   {"tensor", &NameType(), kRequired, "a tensor of it"}});
  static const Type tensor_file{
      .kind = Kind::kText, .what = "a file of tensors", .pattern = &TensorFilePattern()};
  static const Type digest{.kind = Kind::kText, .what = "a digest", .pattern = &DigestPattern()};
  static const Type file = ParametersType(
      "the parameters of file", {{"path", &tensor_file, kRequired, "a safetensors file beside the case file"},
                                 {"tensor", &NameType(), kRequired, "a tensor of it"},
                                 {"sha256", &digest, kRequired, "of the tensor's bytes"}});
  static const Type type{
      .kind = Kind::kMap,
      .what = "a fill with parameters",
      .fields =
          {{"normal", &normal, kOptional, "normal deviates"},
           {"uniform", &uniform, kOptional, "uniform in [low, high)"},
           {"integers", &integers, kOptional, "integers from low to high"},
           {"positive", &positive, kOptional, "uniform in (0, scale]"},
           {"wide_exponent", &wide, kOptional, "random significands, exponents uniform from low to high"},
           {"lattice", &lattice, kOptional, "an integer formula: float32 dot products exact in any order"},
           {"values", &Values(), kOptional, "the elements themselves, row-major"},
           {"full", &full, kOptional, "one value everywhere"},
           {"arange", &arange, kOptional, "start, start + step, ..."},
           {"ties", &ties, kOptional, "half-way between two values of a narrower format"},
           {"probe", &probe, kOptional, "dot products that tell how they were computed"},
           {"cross", &cross, kOptional, "the same for every row of the one and column of the other operand"},
           {"record", &record, kOptional, "inputs of recorded hardware, row by row"},
           {"file", &file, kOptional, "a tensor beside the case file"}},
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

const Type& OperandType() {
  static const Type type{.kind = Kind::kText,
                         .what = "an operand, a name or a number",
                         .definition = "operand",

                         .pattern = &LinePattern()};
  return type;
}

Type& StepFields() {
  static Type type{.kind = Kind::kTagged, .what = "a step", .definition = "step", .tag = "op"};
  return type;
}

const Type& Integers() {
  static const Type type{
      .kind = Kind::kList, .what = "a list of integers", .definition = "integers", .item = &IntegerType()};
  return type;
}
const Type& Dims() {
  static const Type type{.kind = Kind::kEither,
                         .what = "a dimension or a list of dimensions",
                         .scalar = &IntegerType(),
                         .list = &Integers()};
  return type;
}
const Type& NewShape() {
  static const Type extent{
      .kind = Kind::kInteger, .what = "an extent, or -1", .low = -1, .high = int64_t{1} << 28};
  static const Type type{
      .kind = Kind::kList, .what = "a shape, a list of extents", .item = &extent, .max_items = 16};
  return type;
}
const Type& ValueName() {
  static const Type type{.kind = Kind::kText,
                         .what = "the name of a value",
                         .definition = "value_name",
                         .pattern = &NamePattern()};
  return type;
}
const Type& SetDataTo() {
  static const Type type{.kind = Kind::kMap,
                         .what = "what set_data sets, {cast: DTYPE} or {value: NAME}",
                         .fields = {{"cast", &DTypeType(), kOptional, "w.data = w.data.to(dtype)"},
                                    {"value", &ValueName(), kOptional, "w.data = value"}},
                         .exactly_keys = 1};
  return type;
}

const Type& ResultNames() {
  static const Type list{
      .kind = Kind::kList, .what = "a list of names", .item = &NameType(), .min_items = 1, .max_items = 64};
  static const Type type{
      .kind = Kind::kEither, .what = "a name or a list of names", .scalar = &NameType(), .list = &list};
  return type;
}

/// What may stand at an attribute of an op.
const Type& AttributeType(const OpAttribute& attribute) {
  switch (attribute.kind) {
    case AttrKind::kDTypeName:
      return DTypeType();
    case AttrKind::kInteger:
      return IntegerType();
    case AttrKind::kNumber:
      return NumberType();
    case AttrKind::kBoolean:
      return BooleanType();
    case AttrKind::kExtents:
      return ShapeType();
    case AttrKind::kNewExtents:
      return NewShape();
    case AttrKind::kIntegers:
      return Integers();
    case AttrKind::kDims:
      return Dims();
    case AttrKind::kEquation:
      return TextType();
    case AttrKind::kValueName:
      return ValueName();
    case AttrKind::kSetDataTo:
      return SetDataTo();
    case AttrKind::kWord:
      break;
  }
  static std::map<const OpAttribute*, Type> choices;  // rows and map entries stay where they are
  return choices
      .try_emplace(&attribute, Type{.kind = Kind::kWord,
                                    .what = attribute.what,
                                    .words = {attribute.words.begin(), attribute.words.end()}})
      .first->second;
}

std::vector<Type::Variant> StepVariants() {
  std::vector<Type::Variant> variants;
  static std::vector<Type> operand_lists;
  operand_lists.reserve(Ops().size());  // Fields point into it
  static const Type open_operands{.kind = Kind::kList, .what = "a list of operands", .item = &OperandType()};
  static const Type reference{.kind = Kind::kWord, .what = "none", .words = {"none"}};
  const Field as{"as", &NameType(), kOptional, "the name of the result"};
  const Field each{"as", &ResultNames(), kOptional, "the name of the (first) result, or a list: of each"};
  const Field out{"out", &NameType(), kOptional, "PyTorch's out=: the buffer that takes the result"};
  for (const OpRow& op : Ops()) {
    Type::Variant variant{.word = op.name};
    variant.fields.push_back({"op", &TextType(), kRequired, "which op"});
    if (op.operands.most > 0) {
      operand_lists.push_back({.kind = Kind::kList,
                               .what = "a list of operands",
                               .item = &OperandType(),
                               .min_items = op.operands.fewest,
                               .max_items = op.operands.most});
      variant.fields.push_back({"of", &operand_lists.back(), kRequired, "operands, in PyTorch's order"});
    }
    if (op.kind == OpRow::Kind::kScope)
      variant.fields.push_back({"steps", &StepsType(), kRequired, "what runs inside the scope"});
    if (op.GivesValue()) variant.fields.push_back(op.GivesSeveral() ? each : as);
    if (op.out == OpRow::Out::kOut) variant.fields.push_back(out);
    for (const OpAttribute& attribute : op.attributes) {
      variant.fields.push_back({attribute.key, &AttributeType(attribute),
                                attribute.required ? kRequired : kOptional, attribute.about});
    }
    variants.push_back(std::move(variant));
  }
  for (const std::string_view family : {"aten::*", "torch.*"}) {
    variants.push_back(
        {.word = family,
         .fields = {{"op", &TextType(), kRequired, "an op of PyTorch's dispatcher, or a public function"},
                    {"of", &open_operands, kOptional, "positional arguments"},
                    each,
                    out,
                    {"reference", &reference, kOptional, "none: compared across backends only"}},
         .rest = &Anything()});
  }
  return variants;
}

}  // namespace

const Type& TextType() {
  static const Type type{
      .kind = Kind::kText, .what = "text", .definition = "text", .pattern = &LinePattern()};
  return type;
}

const Type& NameType() {
  static const Type type{
      .kind = Kind::kText, .what = "a name", .definition = "name", .pattern = &NamePattern()};
  return type;
}
const Type& NumberType() {
  static const Type type{.kind = Kind::kNumber, .what = "a number", .definition = "number"};
  return type;
}
const Type& IntegerType() {
  static const Type type{.kind = Kind::kInteger, .what = "an integer", .definition = "integer"};
  return type;
}
const Type& BooleanType() {
  static const Type type{.kind = Kind::kBoolean, .what = "true or false", .definition = "boolean"};
  return type;
}

const Type& ShapeType() {
  static const Type extent{.kind = Kind::kInteger, .what = "an extent", .low = 1, .high = int64_t{1} << 28};
  static const Type type{.kind = Kind::kList,
                         .what = "a shape, a list of extents",
                         .definition = "shape",
                         .item = &extent,
                         .max_items = 16};
  return type;
}

const Type& DTypeType() {
  static const Type type{
      .kind = Kind::kWord, .what = "a dtype", .definition = "dtype", .words = AllDTypeNames()};
  return type;
}

const Type& StepsType() {
  static const Type type{
      .kind = Kind::kList, .what = "a list of steps", .item = &StepFields(), .min_items = 1};
  return type;
}

const Type& StepType() {
  // Steps hold steps, so the variants come after the type that they refer to.
  static const bool filled = [] {
    StepFields().variants = StepVariants();
    return true;
  }();
  static_cast<void>(filled);
  return StepFields();
}

const Type& TensorsType() {
  static const Type type{
      .kind = Kind::kMap, .what = "a map of tensors", .rest = &Tensor(), .rest_key = &NamePattern()};
  return type;
}

const Type& TagsType() {
  static const Type tag{.kind = Kind::kText, .what = "a tag", .pattern = &TagPattern()};
  static const Type type{.kind = Kind::kList, .what = "a list of tags", .item = &tag, .max_items = 64};
  return type;
}

const Type& KnobsType() {
  static const Type type = [] {
    static std::vector<Type> values;
    values.reserve(KnobRows().size());
    Type knobs{.kind = Kind::kMap, .what = "a map of knobs", .definition = "knobs"};
    for (const KnobRow& row : KnobRows()) {
      if (row.use != KnobRow::Use::kSetting) continue;
      switch (row.form) {
        case KnobRow::Form::kListed:
          values.push_back({.kind = Kind::kWord, .what = "a knob's value"});
          values.back().words.assign(row.values.begin(), row.values.end());
          break;
        case KnobRow::Form::kCount:
          values.push_back({.kind = Kind::kInteger, .what = "a count", .low = 1, .high = 999});
          break;
        case KnobRow::Form::kOpen:
        case KnobRow::Form::kName:
          values.push_back(TextType());
      }
      knobs.fields.push_back({row.name, &values.back(), kOptional, row.about});
    }
    return knobs;
  }();
  return type;
}

const Type& RequiresType() {
  static const Type device{.kind = Kind::kWord, .what = "a device", .words = {"cpu", "cuda", "xla"}};
  static const Type type{
      .kind = Kind::kMap,
      .what = "what a case needs",
      .definition = "requires",
      .fields = {{"device", &device, kOptional, "the device it must run on"},
                 {"capability", &TextType(), kOptional, "a capability that the adapter announces"},
                 {"package", &TextType(), kOptional, "a package that must be installed"}}};
  return type;
}

const Type& SweepType() {
  static const Type list{
      .kind = Kind::kList, .what = "a list of scalars", .item = &TextType(), .min_items = 1};
  static const Type choice{
      .kind = Kind::kEither, .what = "a scalar or a list of scalars", .scalar = &TextType(), .list = &list};
  static const Type choices{
      .kind = Kind::kList, .what = "a list of choices", .item = &choice, .min_items = 1};
  static const Type type{.kind = Kind::kMap, .what = "a sweep", .rest = &choices, .rest_key = &NamePattern()};
  return type;
}

const Type& CaseType() {
  static const Type name{.kind = Kind::kText, .what = "a case name", .pattern = &CaseNamePattern()};
  static const Type observed{.kind = Kind::kText, .what = "an observed value", .pattern = &ObservedPattern()};
  static const Type observe{.kind = Kind::kList,
                            .what = "a list of what is observed",
                            .item = &observed,
                            .min_items = 1,
                            .max_items = 256};
  StepType();  // fills in the steps before anyone walks the table
  static const Type type{
      .kind = Kind::kMap,
      .what = "a case",
      .definition = "case",
      .fields = {
          {"name", &name, kRequired, "id = path + name"},
          {"about", &TextType(), kOptional, "what the case asks, in a sentence"},
          {"source", &TextType(), kOptional, "where the question comes from"},
          {"tags", &TagsType(), kOptional, "tiers smoke, ci, nightly and free words"},
          {"sweep", &SweepType(), kOptional,
           "named lists; every combination is a case, $name stands for the choice"},
          {"tensors", &TensorsType(), kOptional, "inputs by name"},
          {"program", &StepsType(), kRequired, "steps in order"},
          {"observe", &observe, kRequired, "values, NAME.grad, NAME.grad_metadata_dtype, trace, peak_bytes"},
          {"knobs", &KnobsType(), kOptional, "settings asked of the backend"},
          {"requires", &RequiresType(), kOptional, "skipped where absent"},
          {"contract", &ContractType(), kOptional, "what is demanded, and on whose authority"},
          {"expect", &ExpectType(), kOptional, "what is known today, per backend; a change is news"}}};
  return type;
}

namespace {

Type MakeFileType(const Type& cases) {
  return {.kind = Kind::kMap,
          .what = "a case file",
          .fields = {{"about", &TextType(), kOptional, "what the file asks; default for its cases"},
                     {"source", &TextType(), kOptional, "default for its cases"},
                     {"tags", &TagsType(), kOptional, "default for its cases"},
                     {"knobs", &KnobsType(), kOptional, "defaults for its cases, knob by knob"},
                     {"requires", &RequiresType(), kOptional, "defaults for its cases, key by key"},
                     {"contract", &ContractType(), kOptional, "default for its cases"},
                     {"expect", &ExpectType(), kOptional, "defaults for its cases, backend by backend"},
                     {"cases", &cases, kRequired, "the cases"}}};
}

}  // namespace

const Type& FileType() {
  static const Type cases{
      .kind = Kind::kList, .what = "a list of cases", .item = &CaseType(), .min_items = 1};
  static const Type type = MakeFileType(cases);
  return type;
}

const Type& FileHeadType() {
  static const Type deferred{.kind = Kind::kDeferred, .what = "a case"};
  static const Type cases{.kind = Kind::kList, .what = "a list of cases", .item = &deferred, .min_items = 1};
  static const Type type = MakeFileType(cases);
  return type;
}

}  // namespace ulpscope
