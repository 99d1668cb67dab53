"""Architectures of transformers and diffusers, built from a configuration with random weights: no network, two layers, width 64."""

import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / ".venv-models" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def available():
    """Whether the packages are installed (ci/setup --with models); they come after those of this environment."""
    if not PACKAGES.is_dir():
        return False
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    return True


def _decoders(hf, layers):
    common = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4, vocab_size=256,
                  max_position_embeddings=128)
    grouped = dict(common, num_key_value_heads=2)
    gpt2 = dict(n_embd=64, n_layer=layers, n_head=4, vocab_size=256, n_positions=128)
    return {
        "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**grouped)),
        "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**grouped, sliding_window=16)),
        "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**grouped, head_dim=16)),
        "gemma2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**grouped, head_dim=16, sliding_window=16)),
        "phi3": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**grouped, pad_token_id=0)),
        "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**grouped, num_local_experts=4, experts_implementation="batched_mm")),
        "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(**gpt2)),
        "neox": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**common)),
        "mamba": lambda: hf.MambaForCausalLM(hf.MambaConfig(hidden_size=64, num_hidden_layers=layers, vocab_size=256, state_size=8)),
    }


def _encoders(hf, layers):
    common = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4, vocab_size=256,
                  max_position_embeddings=128)
    picture = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4, image_size=32, patch_size=8)
    return {
        "bert": lambda: hf.BertModel(hf.BertConfig(**common)),
        "roberta": lambda: hf.RobertaModel(hf.RobertaConfig(**common)),
        "distilbert": lambda: hf.DistilBertModel(hf.DistilBertConfig(dim=64, hidden_dim=128, n_layers=layers, n_heads=4, vocab_size=256)),
        "vit": lambda: hf.ViTModel(hf.ViTConfig(**picture)),
        "clip-vision": lambda: hf.CLIPVisionModel(hf.CLIPVisionConfig(**picture)),
        "clip-text": lambda: hf.CLIPTextModel(hf.CLIPTextConfig(**common)),
        "t5": lambda: hf.T5EncoderModel(hf.T5Config(d_model=64, d_ff=128, num_layers=layers, num_heads=4, d_kv=16, vocab_size=256)),
        "whisper": lambda: hf.models.whisper.modeling_whisper.WhisperEncoder(hf.WhisperConfig(
            d_model=64, encoder_layers=layers, encoder_attention_heads=4, encoder_ffn_dim=128, num_mel_bins=16, max_source_positions=16,
            vocab_size=256, pad_token_id=0, decoder_layers=layers, decoder_attention_heads=4, decoder_ffn_dim=128)),
    }


def _unet():
    import diffusers
    return diffusers.UNet2DModel(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32),
                                 norm_num_groups=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                 up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8)


NAMES = ("llama", "mistral", "qwen3", "gemma2", "phi3", "mixtral", "gpt2", "neox", "mamba", "bert", "roberta", "distilbert", "vit",
         "clip-vision", "clip-text", "t5", "whisper", "unet")


def build(name, layers=2):
    """(module, arguments): the model in bfloat16 whose forward gives one tensor, and its inputs."""
    import torch
    import transformers as hf
    torch.manual_seed(0)
    made = {**_decoders(hf, layers), **_encoders(hf, layers), "unet": _unet}[name]
    model = made().eval().to(torch.bfloat16)
    for parameter in model.parameters():
        parameter.requires_grad_(False)

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *args):
            if name in ("vit", "clip-vision", "whisper"):
                out = self.model(args[0])
            elif name == "unet":
                out = self.model(*args)
            elif name in _encoders(hf, layers):
                out = self.model(input_ids=args[0])
            elif name == "mamba":
                out = self.model(input_ids=args[0], use_cache=False)
            else:
                out = self.model(input_ids=args[0], attention_mask=torch.ones_like(args[0]), use_cache=False)
            if hasattr(out, "sample"):
                return out.sample
            return out.logits if hasattr(out, "logits") else out.last_hidden_state

    return Whole(), _inputs(name, torch)


def _inputs(name, torch):
    if name in ("vit", "clip-vision"):
        return (torch.randn(1, 3, 32, 32, dtype=torch.bfloat16),)
    if name == "whisper":
        return (torch.randn(1, 16, 32, dtype=torch.bfloat16),)
    if name == "unet":
        return (torch.randn(1, 3, 8, 8, dtype=torch.bfloat16), torch.tensor([7]))
    return (torch.randint(2, 256, (1, 16)),)
