"""Run by a test under Triton's interpreter: fused decoding against the plain one.

With `long` as its argument it goes through more kinds of models.
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from chat.tiny import byte_encoding, random_gpt
from hotgrid.chat import Engine, LanguageModel, Sampling, generate
from hotgrid.chat._generate import _burst, _stepper
from hotgrid.chat._generate._fused import _step
from hotgrid.errors import UnstableError
from hotgrid.nn import PagedCache

SMALL = {"vocabulary": 61, "layers": 1, "size": 16, "heads": 2}
LLAMA_LIKE = {"activation": "swiglu", "norm": "rms", "cap": None, "tied": True, "layers": 2}
LLAMA_LIKE |= {"heads": 4, "kv_heads": 2, "window": "SL", "short": 5, "embed_norm": False}
MORE = (
    (1, LLAMA_LIKE),
    (1, {"head_size": 6, "heads": 3, "kv_heads": 1, "size": 24, "hidden": 40}),
    (3, {"head_size": 6, "heads": 3, "kv_heads": 1, "size": 24, "hidden": 40}),
    (3, {"qk_norm": False, "activation": "gelu"}),
    (1, {"activation": "reglu", "size": 80}),
    (3, {"activation": "glu"}),
    (1, {"activation": "silu"}),
    (3, {"activation": "relu", "norm": "rms"}),
)
PAGE = 4


def gpt(**numbers: object):
    return random_gpt(2, **{**SMALL, **numbers})


@torch.inference_mode()
def logits_agree(kind: dict, batch: int, seen: int) -> bool:
    """Whether the logits after some tokens are those of the whole sequence."""
    model = gpt(**kind)
    config, width = model.config, seen + 2
    tokens = torch.randint(0, 61, (batch, width), generator=torch.Generator().manual_seed(0))
    wanted = model(tokens)
    memory = model.memory(batch, width)
    model.features(tokens[:, :seen], memory=memory)
    blocks = -(-width // PAGE)
    # The blocks of a sequence are anywhere; the first belongs to nobody.
    table = 1 + torch.randperm(batch * blocks).view(batch, blocks)
    caches = []
    for each in memory.caches:
        kind_of = (batch * blocks + 1, config.groups, PAGE, config.head)
        cache = PagedCache(*kind_of)
        place = table[:, torch.arange(width) // PAGE] * PAGE + torch.arange(width) % PAGE
        cache.keys[place] = each.keys.transpose(1, 2)
        cache.values[place] = each.values.transpose(1, 2)
        cache.keys[place[:, seen:]] = cache.values[place[:, seen:]] = torch.nan
        caches.append((cache.keys, cache.values))
    fed, position = tokens[:, seen].clone(), torch.full((batch,), seen)
    step = _step.FusedStep(model, caches, PAGE, fed, table, position)
    for place in range(seen, width):
        fed.copy_(tokens[:, place])
        position.fill_(place)
        step.embed()
        step.feed()
        if not torch.allclose(step.logits, wanted[:, place], rtol=1e-5, atol=2e-5):
            return False
    return True


def told(pieces) -> tuple[str, list[int], str | None]:
    pieces = list(pieces)
    tokens = [token for piece in pieces for token in piece.tokens]
    return "".join(piece.text for piece in pieces), tokens, pieces[-1].finish


def bursts_agree(language: LanguageModel, prompt: list[int], way: Sampling) -> bool:
    found = told(generate(language, prompt, way, burst=3))
    return found == told(generate(language, prompt, way, burst=1))


def engine_agrees(language: LanguageModel) -> bool:
    """Whether requests that come and go get what they get alone, also if the cache is full."""
    ways = [
        Sampling(temperature=0, max_tokens=7),
        Sampling(temperature=2, seed=3, max_tokens=9, stop=("\x11",)),
        Sampling(temperature=1, seed=-4, top_k=9, repetition=1.5, max_tokens=2),
    ]
    prompts = [[1], [5] * 10, [2, 3, 4]]
    engine = Engine(language, slots=2, cache=64, static=True)
    asked = []
    for prompt, way in zip(prompts, ways, strict=True):
        asked.append(engine.submit(prompt, way))
        # The next one joins while a burst is under way.
        engine.step()
    everything = zip(prompts, ways, asked, strict=True)
    return engine._stepper.most_steps(2) > 1 and all(
        told(request) == told(generate(language, prompt, way, burst=1))
        for prompt, way, request in everything
    )


def bursts(language: LanguageModel) -> dict[str, bool]:
    """Whether bursts agree for every kind of sampling; after it the weights are NaN."""
    drawn = Sampling(temperature=2, seed=5, max_tokens=5)
    cut = Sampling(temperature=3, seed=2, top_k=9, top_p=0.9, max_tokens=7)
    weak = Sampling(temperature=0, repetition=2.0, max_tokens=7)
    found = {
        "greedy": bursts_agree(language, [4] * 5, Sampling(temperature=0, max_tokens=9)),
        "drawn": bursts_agree(language, [1, 2, 3], drawn),
        "long prompt": bursts_agree(language, [4] * 11, drawn),
        "cut": bursts_agree(language, [9], cut),
        "repetition": bursts_agree(language, [9], weak),
        "not finite": False,
    }
    with torch.no_grad():
        language.model.head.linear.weight[3] = float("nan")
    try:
        list(generate(language, [1], drawn, burst=3))
    except UnstableError:
        found["not finite"] = True
    return found


def main() -> None:
    torch.set_num_threads(1)
    # Fewer programs, as the interpreter does one after the other.
    _step._BUSY, _step._SPAN = 1, 4
    _burst.fusible = _stepper.fusible = _step.understood
    language = LanguageModel(gpt(), byte_encoding(), {"name": "tiny"}, None)
    every = sys.argv[1:] == ["long"]
    found = {
        "plain, one": logits_agree({}, 1, 18),
        "llama-like, three": logits_agree(LLAMA_LIKE, 3, 7),
    }
    for batch, kind in MORE if every else ():
        found[f"{batch}: {kind}"] = logits_agree(kind, batch, 18 // batch)
    _step._SPAN = 256
    found["engine"] = engine_agrees(language)
    if every:
        found |= bursts(language)
    wrong = [name for name, agrees in found.items() if not agrees]
    print(f"{len(found)} cases, wrong: {wrong}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
