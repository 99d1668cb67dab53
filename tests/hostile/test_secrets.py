#!/usr/bin/env python3
"""Secrets do not enter a run folder: neither those of the environment, nor those in an adapter's texts, wherever they stand. Variables that
change numbers are recorded all the same, and text that only looks like a secret stays.
"""
import json
import pathlib
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run_folders  # noqa: E402

SECRET = "hunter2-6f1c"
# Variables with the prefixes of libraries that backends use. The first is PyTorch's own (torch/_inductor/remote_cache.py).
PLANTED = {
    "TORCHINDUCTOR_REDIS_URL": f"redis://default:{SECRET}@cache.example:6379", "TORCH_HUB_URL": f"https://user:{SECRET}@host.example",
    "XLA_FLAGS": f"--xla_dump_to=https://user:{SECRET}@host.example --xla_cpu_enable_fast_math=false", "TORCH_CRED": SECRET,
    "JAX_PW": SECRET, "OPENBLAS_PWD": SECRET, "JAX_PAT": SECRET, "XLA_SAS": SECRET, "TORCH_JWT": SECRET, "TORCH_BEARER": SECRET,
    "TORCH_DSN": f"https://{SECRET}@sentry.example/1", "TORCH_HOME": f"/mnt/{SECRET}", "ONEDNN_PASSPHRASE": SECRET, "OMP_NOTE": SECRET,
    "MKL_LICENSE": SECRET, "CUBLAS_LOG": SECRET, "NVIDIA_API_KEY": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "HF_TOKEN": SECRET,
    "MKL_CBWR": f"COMPATIBLE,token={SECRET}", "JAX_PLATFORMS": f"cpu,proxy=http://{SECRET}@proxy:80"}
# Texts of adapters: the secret in each of them must go, and the rest of the text stay.
SAID = {
    "could not clone https://user:{}@git.example/x.git: refused": "could not clone https://(not recorded)@git.example/x.git: refused",
    "redis://:{}@cache:6379/0": "redis://(not recorded)@cache:6379/0",
    "login with password={} failed": "login with password=(not recorded) failed",
    "{{'api_key': '{}', 'n': 3}}": "{'api_key': '(not recorded)', 'n': 3}",
    "curl -H 'Authorization: Bearer {}' host": "curl -H 'Authorization: Bearer (not recorded)' host",
    "tool --password {} --verbose": "tool --password (not recorded) --verbose",
    "GET /blob?sv=2024&sig={}&se=1": "GET /blob?sv=2024&sig=(not recorded)&se=1",
}
TOKENS = ["ghp_0123456789abcdefghij0123456789abcdef", "hf_abcdefghij0123456789abcdefghij0123", "AKIA0123456789ABCDEF",
          "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
          "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkq-----END PRIVATE KEY-----"]
# None of these is a secret.
PLAIN = ["matmul(): expected key to be a tensor, key=None, token: 7", "max_tokens=512 pad_token_id=0 tokenizer=bpe",
         "https://docs.example/page?user=me#top", "git+https://github.com/pytorch/pytorch.git@v2.13.0", "triton::key = value::type",
         "aten::scaled_dot_product(query, key, value)", "sort by key: ascending", "mail to somebody@host.example"]


class Secrets(run_folders.InFolder):
    def leaks(self, folder, secrets):
        """Files of the folder (and the pages beside it) that hold one of `secrets`."""
        files = [each for each in [*(self.root / folder).rglob("*"), *self.root.glob(f"{folder}.*")] if each.is_file()]
        self.assertGreaterEqual(len(files), 5)
        return [f"{each.name}: {secret}" for each in files for secret in secrets if secret.encode() in each.read_bytes()]

    def report(self, folder):
        return json.loads((self.root / folder / "report.json").read_text(encoding="utf-8"))

    def test_the_environment_is_no_part_of_the_folder(self):
        self.write("mine.yaml", run_folders.cases(["a"]))
        self.good("run", "mine.yaml", "-q", "-b", "emulated", "-o", "r", "--html", "r.html", "--markdown", "r.md", **PLANTED)
        self.assertEqual(self.leaks("r", [SECRET]), [])
        seen = self.report("r")["run"]["environment"]
        self.assertEqual(seen["TORCHINDUCTOR_REDIS_URL"], "(set, not recorded)")
        self.assertNotIn("HF_TOKEN", seen)
        self.assertEqual(seen["XLA_FLAGS"], "--xla_dump_to=https://(not recorded)@host.example --xla_cpu_enable_fast_math=false")

    def test_what_changes_numbers_is_recorded(self):
        self.write("mine.yaml", run_folders.cases(["a"]))
        said = {"NVIDIA_TF32_OVERRIDE": "0", "XLA_FLAGS": "--xla_cpu_enable_fast_math=true", "OPENBLAS_CORETYPE": "Haswell",
                "TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1", "JAX_DEFAULT_MATMUL_PRECISION": "highest", "MKL_CBWR": "AVX2"}
        self.good("run", "mine.yaml", "-q", "-b", "emulated", "-o", "r", **said)
        seen = self.report("r")["run"]["environment"]
        self.assertEqual({name: seen[name] for name in said}, said)

    def adapter(self, lines):
        shutil.copy(HERE / "talking_adapter.py", self.root / "talking_adapter.py")
        (self.root / "talking_adapter.py").chmod(0o755)
        self.write("said", "".join(line + "\n" for line in lines))
        self.write("mine.yaml", run_folders.cases(["raises", "crashes", "completes"]))

    def run_talking(self, **variables):
        ended = self.call("run", "mine.yaml", "-q", "-b", "talking", "--adapter", "./talking_adapter.py", "-o", "r", "--html", "r.html",
                          "--repeat", "1", **variables)
        self.assertIn(ended.returncode, (1, 6), ended.stderr)
        results = {each["id"].rpartition("/")[2]: each for each in self.report("r")["results"]}
        self.assertEqual({name: each["outcome"]["kind"] for name, each in results.items()},
                         {"raises": "raised", "crashes": "crashed", "completes": "completed"})
        return results

    def test_what_an_adapter_says_is_without_secrets(self):
        self.adapter([text.format(SECRET) for text in SAID] + TOKENS)
        results = self.run_talking()
        self.assertEqual(self.leaks("r", [SECRET, *TOKENS, "MIIEvQIBADANBgkq"]), [])
        for kept in SAID.values():
            self.assertIn(kept, results["raises"]["outcome"]["text"])
            self.assertIn(kept, json.loads(self.journal_of("crashes"))["record"]["observation"]["worker_log"])
        self.assertEqual(json.loads(self.journal_of("completes"))["record"]["observation"]["notes"][:len(SAID)], list(SAID.values()))

    def journal_of(self, case):
        return next(line for line in (self.root / "r/journal.jsonl").read_text(encoding="utf-8").splitlines()
                    if '"type":"result"' in line and f'"case":"mine/{case}"' in line)

    def test_values_of_secret_variables_go_wherever_they_stand(self):
        """Without any form around them: they are known by their value."""
        odd = "correct horse battery"
        self.adapter([f"cannot open {SECRET}", f"x{SECRET}y", f"said {odd} twice: {odd}", "user bob-the-user of p4ss.word"])
        results = self.run_talking(HF_TOKEN=SECRET, MY_PASSPHRASE=odd, CACHE=f"redis://bob:{SECRET}-2@host", DB="pg://bob:p4ss.word@db/x")
        self.assertEqual(self.leaks("r", [SECRET, odd, "p4ss.word"]), [])
        self.assertIn("x(not recorded)y", results["raises"]["outcome"]["text"])
        self.assertIn("user bob-the-user of", results["raises"]["outcome"]["text"])

    def test_what_is_no_secret_stays(self):
        self.adapter(PLAIN)
        text = self.run_talking(PWD=str(self.root), KEY_FILE="/etc/key", EDITOR_KEYS="on")["raises"]["outcome"]["text"]
        self.assertEqual(text, "; ".join(PLAIN))


if __name__ == "__main__":
    unittest.main()
