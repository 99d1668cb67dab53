"""Reading report.json in tests: models by name and exclusions themselves instead of indices, and where it lists a part only, all that the run folder has."""
import json
import pathlib


def named(report):
    """`report` with the names of models, and with exclusions, in the place of their indices."""
    names, exclusions = report["models"], [{**each, "model": report["models"][each["model"]]} for each in report["exclusions"]]
    for value in (value for result in report["results"] for value in result["values"].values()):
        for key in ("models", "models_proved"):
            value[key] = [names[index] for index in value[key]]
        value["excluded"] = [exclusions[index] for index in value["excluded"]]
    return report


def load(path):
    """The report of a file, or that of a run folder."""
    path = pathlib.Path(path)
    return named(json.loads((path / "report.json" if path.is_dir() else path).read_text(encoding="utf-8")))


def name(model):
    """The program's name of a model that is recorded word by word (PrecisionModel::Name)."""
    listed = [",".join(f"{key}:{word}" for key, word in sorted(model[facet].items())) for facet in ("in", "cuts")]
    text = f"in={listed[0] or 'as_is'};prod={model['prod']};acc={model['acc']};mid={model['mid']};out={model['out']}"
    return text + (f";cuts={listed[1]}" if listed[1] else "")


def proved(folder, case, backend, value):
    """Every model that the recorded bits of a result leave, its auxiliary inputs (CASE~INPUT) taken together."""
    left = None
    for line in (pathlib.Path(folder) / "classified.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)["record"]
        if record["type"] != "classified" or record["backend"] != backend or record["case"].partition("~")[0] != case:
            continue
        if value in record["values"]:
            here = {name(model) for model in record["values"][value]["models_proved"]}
            left = here if left is None else left & here
    return sorted(left or ())
