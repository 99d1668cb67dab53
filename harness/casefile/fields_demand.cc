// The field table of contracts, expectations and the deviations file: demands on values.
#include "harness/casefile/fields.h"
#include "harness/model/trace.h"

namespace ulpscope {
namespace {

using enum Presence;
using Kind = Type::Kind;

const Type& Raised() {
  static const Type type{
      .kind = Kind::kMap,
      .what = "an error to expect",
      .definition = "raised",
      .fields = {{"class", &TextType(), kOptional, "the framework's error class"},
                 {"match", &TextType(), kOptional, "a regular expression searched in its text"}}};
  return type;
}

const Type& Demand() {
  static const auto facet = [](std::string_view name) {
    return Type{.kind = Kind::kText, .what = FacetPattern(name).what, .pattern = &FacetPattern(name)};
  };
  static const Type in = facet("in"), prod = facet("prod"), acc = facet("acc"), mid = facet("mid"),
                    out = facet("out");
  static const auto list = [](const Type* word) {
    return Type{.kind = Kind::kList, .what = "a list of words", .item = word, .min_items = 1};
  };
  static const Type ins = list(&in), prods = list(&prod), accs = list(&acc), mids = list(&mid),
                    outs = list(&out);
  static const auto either = [](const Type* word, const Type* words) {
    return Type{.kind = Kind::kEither, .what = "a word or a list of words", .scalar = word, .list = words};
  };
  static const Type one_in = either(&in, &ins), prod_words = either(&prod, &prods),
                    acc_words = either(&acc, &accs), mid_words = either(&mid, &mids),
                    out_words = either(&out, &outs);
  static const Type per_operand{
      .kind = Kind::kMap, .what = "words per operand", .rest = &one_in, .rest_key = &NamePattern()};
  static const Type in_words{.kind = Kind::kEither,
                             .what = "words for every operand, or a map of operands",
                             .scalar = &in,
                             .list = &ins,
                             .map = &per_operand};
  static const Type type{.kind = Kind::kMap,
                         .what = "what a value may be",
                         .definition = "demand",
                         .fields = {{"dtype", &DTypeType(), kOptional, "dtype of the value"},
                                    {"in", &in_words, kOptional, "how operands are rounded"},
                                    {"prod", &prod_words, kOptional, "how products are rounded"},
                                    {"acc", &acc_words, kOptional, "the accumulator"},
                                    {"mid", &mid_words, kOptional, "rounding between accumulator and store"},
                                    {"out", &out_words, kOptional, "the store"}}};
  return type;
}

}  // namespace

const Type& ContractType() {
  static const Type status{.kind = Kind::kWord,
                           .what = "a status",
                           .words = {"specified", "documented", "de_facto", "unspecified"}};
  static const Type any{.kind = Kind::kWord, .what = "any", .words = {"any"}};
  static const Type demands{
      .kind = Kind::kMap,
      .what = "what is accepted",
      .fields = {{"raised", &Raised(), kOptional, "refusing is allowed (without values: demanded)"}},
      .rest = &Demand(),
      .rest_key = &ValueKeyPattern()};
  static const Type accept{
      .kind = Kind::kEither, .what = "any, or a map of values", .scalar = &any, .map = &demands};
  static const Type value{.kind = Kind::kText, .what = "the name of a value", .pattern = &ValueKeyPattern()};
  static const Type values{.kind = Kind::kList,
                           .what = "two names of values or more",
                           .item = &value,
                           .min_items = 2,
                           .max_items = 64};
  static const Type type{
      .kind = Kind::kMap,
      .what = "a contract",
      .definition = "contract",
      .fields = {
          {"status", &status, kRequired, "who says so"},
          {"source", &TextType(), kOptional, "where it is said"},
          {"accept", &accept, kOptional, "any, or what each value may be; not needed beside the next two"},
          {"equal", &values, kOptional, "values that have the same bits on each backend"},
          {"same_class", &values, kOptional, "values that are of one class on each backend"},
          {"prove", &BooleanType(), kOptional,
           "the harness adds inputs that distinguish the models (false)"}}};
  return type;
}

const Type& ExpectType() {
  static const Type versions{.kind = Kind::kText, .what = "versions", .pattern = &VersionsPattern()};
  static const Type observations{.kind = Kind::kMap,
                                 .what = "a map of observations",
                                 .rest = &TextType(),
                                 .rest_key = &ObservedPattern()};
  static const Type stage{.kind = Kind::kWord,
                          .what = "a stage of the trace",
                          .words = {kTraceStages.begin(), kTraceStages.end()}};
  static const Type count{.kind = Kind::kInteger, .what = "a count", .low = 0, .high = 1'000'000};
  static const Type cast{.kind = Kind::kMap,
                         .what = "a count of casts",
                         .fields = {{"stage", &stage, kRequired, "where the trace shows them"},
                                    {"from", &DTypeType(), kOptional, "dtype that is converted; any without"},
                                    {"to", &DTypeType(), kOptional, "dtype that it becomes; any without"},
                                    {"count", &count, kRequired, "how many there are"}}};
  static const Type casts{
      .kind = Kind::kList, .what = "a list of counts of casts", .item = &cast, .min_items = 1};
  static const Type entry{
      .kind = Kind::kMap,
      .what = "an expectation",
      .definition = "expectation",
      .fields = {{"versions", &versions, kOptional, "which versions it is known of; any without"},
                 {"raised", &Raised(), kOptional, "it refuses"},
                 {"unsupported", &TextType(), kOptional, "it cannot; a regular expression for the reason"},
                 {"observations", &observations, kOptional, "answers that are text"},
                 {"casts", &casts, kOptional, "how many conversions a stage shows; the case observes trace"}},
      .rest = &Demand(),
      .rest_key = &ValueKeyPattern()};
  static const Type entries{.kind = Kind::kList,
                            .what = "a list of expectations; the first whose versions match applies",
                            .item = &entry};
  static const Type type{.kind = Kind::kMap,
                         .what = "a map of backends",
                         .definition = "expect",
                         .rest = &entries,
                         .rest_key = &BackendPattern()};
  return type;
}

const Type& DeviationsType() {
  static const Type backend{.kind = Kind::kText, .what = "a backend", .pattern = &BackendPattern()};
  static const Type value{.kind = Kind::kText, .what = "an observed value", .pattern = &ValueKeyPattern()};
  static const Type versions{.kind = Kind::kText, .what = "versions", .pattern = &VersionsPattern()};
  static const Type date{.kind = Kind::kText, .what = "a date", .pattern = &DatePattern()};
  static const Type entry{
      .kind = Kind::kMap,
      .what = "a deviation",
      .fields = {{"case", &TextType(), kRequired, "id of the case"},
                 {"backend", &backend, kRequired, "NAME[@DEVICE][:knob=value,...]"},
                 {"value", &value, kOptional, "the value that deviates; without: the outcome"},
                 {"versions", &versions, kOptional, "any without"},
                 {"found", &TextType(), kRequired, "the class found"},
                 {"reason", &TextType(), kRequired, "why it is known and left"},
                 {"link", &TextType(), kOptional, "the issue that tracks it"},
                 {"expires", &date, kOptional, "the last day it holds"}}};
  static const Type type{
      .kind = Kind::kList, .what = "a list of deviations, one flow map per line", .item = &entry};
  return type;
}

}  // namespace ulpscope
