"""An adapter that computes nothing: it keeps the program and the inputs of each case in the folder keep=FOLDER, for who runs them
elsewhere, and answers that it cannot serve them."""

import dataclasses
import json
import os

from ulpscope_adapter import Adapter, Unsupported, serve
from ulpscope_adapter.tensor import write_safetensors
from ulpscope_adapter.words import WORDS


class Keeper(Adapter):
    def configure(self, backend, device, knobs):
        self.folder = knobs.get("keep", "")

    def capabilities(self):
        return {"name": "keep", "backends": ["keep"], "versions": {"keep": "1"}, "dtypes": list(WORDS["dtypes"]),
                "knobs": {"threads": ["1"], "keep": [*filter(os.path.isdir, [getattr(self, "folder", "")])]},
                "ops": dict.fromkeys(WORDS["ops"])}

    def run(self, request):
        path = os.path.join(self.folder, request.case.replace("/", "--"))
        write_safetensors(path + ".safetensors", {tensor.name: tensor.tensor for tensor in request.tensors})
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump({"case": request.case, "steps": [dataclasses.asdict(step) for step in request.steps], "observe": request.observe}, file)
        raise Unsupported("kept")

    def read_back(self):
        return {"threads": "1", "keep": self.folder}


if __name__ == "__main__":
    serve(Keeper())
