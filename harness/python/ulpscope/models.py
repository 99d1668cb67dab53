"""Names of precision models, as report.json has them, by their facets."""


def facets_of(name):
    """{"in": "as_is", "prod": "exact", "acc": "float32", "mid": "none", "out": "float32_rne"} from
    "in=as_is;prod=exact;...", and "cuts" if it has one (harness/words/facets.h)."""
    return dict(facet.split("=", 1) for facet in name.split(";"))
