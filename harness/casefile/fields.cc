// The field table of case files and of the deviations file.
#include "harness/casefile/fields.h"

#include <map>

#include "harness/num/dtype.h"
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
const Type& SetDataToAttr() {
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

/// The type of an attribute's value.
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
      return SetDataToAttr();
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

const Type& OriginType() {
  static const Type line{.kind = Kind::kInteger, .what = "a line number", .low = 1, .high = 10'000'000};
  static const Type type{.kind = Kind::kMap,
                         .what = "where a step comes from",
                         .definition = "origin",
                         .fields = {{"module", &TextType(), kOptional, "the path of an nn.Module"},
                                    {"file", &TextType(), kOptional, "the name of a source file"},
                                    {"line", &line, kOptional, "a line of it, from 1"}}};
  return type;
}

std::vector<Type::Variant> StepVariants() {
  std::vector<Type::Variant> variants;
  static std::vector<Type> operand_lists;
  operand_lists.reserve(Ops().size());  // Fields point into it
  static const Type open_operands{.kind = Kind::kList, .what = "a list of operands", .item = &OperandType()};
  static const Type reference{.kind = Kind::kWord, .what = "none", .words = {"none"}};
  const Field as{"as", &NameType(), kOptional, "the name of the result"};
  const Field each{"as", &ResultNames(), kOptional, "the name of the (first) result, or a list: of each"};
  const Field at{"at", &OriginType(), kOptional, "where the step comes from, in a captured program"};
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
    variant.fields.push_back(at);
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
                    at,
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
          {"about", &TextType(), kOptional, "the question of the case, in a sentence"},
          {"source", &TextType(), kOptional, "where the question comes from"},
          {"tags", &TagsType(), kOptional, "tiers smoke, ci, nightly and free words"},
          {"sweep", &SweepType(), kOptional,
           "named lists; every combination is a case, $name stands for the choice"},
          {"tensors", &TensorsType(), kOptional, "inputs by name"},
          {"program", &StepsType(), kRequired, "steps in order"},
          {"observe", &observe, kRequired, "values, NAME.grad, NAME.grad_metadata_dtype, trace, peak_bytes"},
          {"knobs", &KnobsType(), kOptional, "settings requested of the backend"},
          {"requires", &RequiresType(), kOptional, "skipped where absent"},
          {"contract", &ContractType(), kOptional, "what is demanded, and on whose authority"},
          {"expect", &ExpectType(), kOptional, "what is known today, per backend; a change is news"}}};
  return type;
}

namespace {

Type MakeFileType(const Type& cases) {
  return {.kind = Kind::kMap,
          .what = "a case file",
          .fields = {{"about", &TextType(), kOptional, "the question of the file; default for its cases"},
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
