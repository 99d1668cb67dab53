// Contracts and expectations: the demands on values, and the errors that are demanded or known.
#include <algorithm>
#include <functional>

#include "harness/base/find.h"
#include "harness/base/pattern.h"
#include "harness/base/text.h"
#include "harness/casefile/decode.h"
#include "harness/casefile/number.h"
#include "harness/words/backend_name.h"

namespace ulpscope {
namespace {

std::vector<std::string> Words(const Node& node) {
  if (node.kind == Node::Kind::kScalar) return {node.text};
  return Mapped(node.children, &Node::text);
}

/// True for a `{` that is not escaped: std::regex unrolls counted repetitions, and (((a{99}){99}){99}) takes
/// seconds.
bool HasCount(std::string_view regex) {
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\') {
      ++i;
    } else if (regex[i] == '{') {
      return true;
    }
  }
  return false;
}

/// The text of a regular expression, checked by compiling it.
std::string DecodeRegex(const Node& node, ErrorSink& errors) {
  constexpr size_t kMaxRegex = 300;  // std::regex recurses
  if (node.text.size() > kMaxRegex) {
    errors.Add(node.mark, "regular expression is too long", std::to_string(node.text.size()) + " characters",
               "at most 300");
    return {};
  }
  if (HasCount(node.text)) {
    errors.Add(node.mark, "counted repetition in a regular expression", node.Describe(),
               "a pattern without {n}", "write \\\\{ for a brace");
    return {};
  }
  if (!IsPattern(node.text)) {
    errors.Add(node.mark, "bad regular expression", node.Describe(), "an ECMAScript regular expression",
               "put a \\ before ( ) [ ] { } * + ? . that mean themselves");
  }
  return node.text;
}

RaisedMatch DecodeRaised(const Node& node, ErrorSink& errors) {
  RaisedMatch raised;
  if (const Node* name = node.Find("class")) raised.error_class = name->text;
  if (const Node* match = node.Find("match")) raised.match = DecodeRegex(*match, errors);
  return raised;
}

ValueDemand DecodeDemand(const Node& node) {
  ValueDemand demand;
  if (const Node* dtype = node.Find("dtype")) demand.dtype = dtype->text;
  for (const char* facet : {"prod", "acc", "mid", "out"}) {
    if (const Node* words = node.Find(facet))
      demand.facets[facet] = Mapped<DemandWord>(Words(*words), std::identity());
  }
  const Node* in = node.Find("in");
  if (in == nullptr) return demand;
  if (in->kind != Node::Kind::kMap) {
    demand.facets["in"] = Mapped<DemandWord>(Words(*in), std::identity());
  } else {
    for (size_t i = 0; i < in->entry_count(); ++i)
      demand.facets["in." + in->key(i).text] = Mapped<DemandWord>(Words(in->value(i)), std::identity());
  }
  return demand;
}

bool IsObserved(const DemandContext& context, std::string_view name) {
  return Contains(context.observed, name);
}

void CheckObserved(const Node& key, const DemandContext& context, ErrorSink& errors) {
  if (IsObserved(context, key.text) || errors.full()) return;
  errors.Add(key.mark, "case '" + context.case_name + "' does not observe '" + key.text + "'", key.Describe(),
             "one of " + Join(context.observed, ", "), Suggest(key.text, context.observed));
}

/// All keys that are no fixed words: the values spoken of.
template <class IsFixed>
std::map<std::string, ValueDemand> DecodeDemands(const Node& node, const DemandContext& context,
                                                 IsFixed is_fixed, ErrorSink& errors) {
  std::map<std::string, ValueDemand> demands;
  for (size_t i = 0; i < node.entry_count(); ++i) {
    if (is_fixed(node.key(i).text)) continue;
    CheckObserved(node.key(i), context, errors);
    if (node.value(i).entry_count() == 0)
      errors.Add(node.value(i).mark, "nothing is said of '" + node.key(i).text + "'", "an empty map",
                 "dtype, in, prod, acc, mid or out");
    demands[node.key(i).text] = DecodeDemand(node.value(i));
  }
  return demands;
}

std::vector<CastCount> DecodeCasts(const Node& node, const DemandContext& context, ErrorSink& errors) {
  if (!IsObserved(context, "trace")) {
    errors.Add(node.mark, "case '" + context.case_name + "' does not observe 'trace'", "casts",
               "trace in observe", "without it nothing says that the backend was asked for its casts");
  }
  std::vector<CastCount> casts;
  for (const Node& item : node.children) {
    CastCount cast{
        .stage = item.Find("stage")->text,
    };
    if (const Node* from = item.Find("from")) cast.from = from->text;
    if (const Node* to = item.Find("to")) cast.to = to->text;
    cast.count = ParseInteger(item.Find("count")->text).value_or(0);
    casts.push_back(std::move(cast));
  }
  return casts;
}

Expectation DecodeEntry(const Node& node, const DemandContext& context, ErrorSink& errors) {
  Expectation entry;
  if (const Node* versions = node.Find("versions")) entry.versions = versions->text;
  const Node* raised = node.Find("raised");
  const Node* unsupported = node.Find("unsupported");
  if (raised != nullptr) entry.raised = DecodeRaised(*raised, errors);
  if (unsupported != nullptr) entry.unsupported = DecodeRegex(*unsupported, errors);
  if (const Node* observations = node.Find("observations")) {
    for (size_t i = 0; i < observations->entry_count(); ++i) {
      CheckObserved(observations->key(i), context, errors);
      entry.observations[observations->key(i).text] = observations->value(i).text;
    }
  }
  if (const Node* casts = node.Find("casts")) entry.casts = DecodeCasts(*casts, context, errors);
  const auto is_fixed = [](std::string_view key) {
    return key == "versions" || key == "raised" || key == "unsupported" || key == "observations" ||
           key == "casts";
  };
  entry.values = DecodeDemands(node, context, is_fixed, errors);
  const bool ends_early = raised != nullptr || unsupported != nullptr;
  if ((raised != nullptr && unsupported != nullptr) ||
      (ends_early && (!entry.values.empty() || !entry.observations.empty() || !entry.casts.empty()))) {
    errors.Add(node.mark, "expectation contradicts itself", "more than one outcome",
               "raised, or unsupported, or values");
  }
  return entry;
}

}  // namespace

Contract DecodeContract(const Node& node, const DemandContext& context, ErrorSink& errors) {
  Contract contract;
  const std::string& status = node.Find("status")->text;
  if (status == "specified") contract.status = ContractStatus::kSpecified;
  if (status == "documented") contract.status = ContractStatus::kDocumented;
  if (status == "de_facto") contract.status = ContractStatus::kDeFacto;
  if (status == "unspecified") contract.status = ContractStatus::kUnspecified;
  if (const Node* source = node.Find("source")) contract.source = source->text;
  for (const auto& [key, names] :
       {std::pair{"equal", &contract.equal}, std::pair{"same_class", &contract.same_class}}) {
    const Node* list = node.Find(key);
    if (list == nullptr) continue;
    for (const Node& name : list->children) {
      CheckObserved(name, context, errors);
      if (Contains(*names, name.text))
        errors.Add(name.mark, "a value is compared with itself", name.Describe(),
                   "names of different values");
      names->push_back(name.text);
    }
  }
  const Node* accepted = node.Find("accept");
  if (accepted == nullptr && !contract.demands())
    errors.Add(node.mark, "missing key 'accept' in 'contract'", "neither accept, equal nor same_class",
               "any, or a map of values");
  const Node* prove = node.Find("prove");
  contract.prove = prove != nullptr && prove->text == "true";
  const auto complain_of_prove = [&](std::string found) {
    if (contract.prove)
      errors.Add(prove->mark, "nothing to prove: the contract demands no class", std::move(found),
                 "in, prod, acc, mid or out for a value", "leave prove out, or say what it is to prove");
  };
  contract.accept_any = accepted == nullptr || accepted->kind == Node::Kind::kScalar;
  if (contract.accept_any) {
    complain_of_prove(accepted == nullptr ? "no class of a value" : "accept: any");
    return contract;
  }
  const Node& accept = *accepted;
  if (accept.entry_count() == 0)
    errors.Add(accept.mark, "contract accepts nothing", "an empty map", "any, or what each value may be");
  if (const Node* raised = accept.Find("raised")) contract.raised = DecodeRaised(*raised, errors);
  contract.values = DecodeDemands(
      accept, context, [](std::string_view key) { return key == "raised"; }, errors);
  if (std::ranges::all_of(contract.values, [](const auto& demand) { return demand.second.facets.empty(); }))
    complain_of_prove("a dtype or an outcome alone");
  return contract;
}

void DecodeExpect(const Node& node, const DemandContext& context,
                  std::map<std::string, std::vector<Expectation>>& expect, ErrorSink& errors) {
  for (size_t i = 0; i < node.entry_count(); ++i) {
    const Node& backend = node.key(i);
    const std::string name(BackendSpec::NameOf(backend.text));
    const auto& known = context.vocabulary.backends;
    if (!known.empty() && !Contains(known, name)) {
      errors.Add(backend.mark, "unknown backend '" + name + "'", backend.Describe(),
                 "one of " + Join(known, ", "), Suggest(name, known));
    }
    auto& entries = expect[backend.text];
    entries.clear();
    for (const Node& entry : node.value(i).children) entries.push_back(DecodeEntry(entry, context, errors));
  }
}

}  // namespace ulpscope
