"""Claim: entropies, patches and embeddings of bytes, faster than transformers, and equal.

The entropy model of facebook/blt-entropy's size and the nano one with random weights, ours and
that of transformers in the same run, on the same bytes; the n-gram table; a tiny byte-latent
transformer. Ours also returns embeddings and goes through long documents in chunks: the largest
difference to one pass is shown, beside that of separate chunks with an overlap of 512 bytes.

    python benchmarks/bench_blt.py --device cuda
"""

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from options import parser
from report import once, report

from hotgrid import blt

DOCUMENTS = {"cuda": (64, 8192), "cpu": (2, 4096)}
THRESHOLD = 1.335442066192627


def text(size: int) -> bytes:
    """Python's own sources, as far as they go."""
    found = bytearray()
    for path in sorted(Path(logging.__file__).parents[1].glob("*.py")):
        found += path.read_bytes()
        if len(found) >= size:
            break
    return bytes(found[:size])


def best(call: Callable[[], Any], device: str, repeats: int = 2) -> float:
    def whole() -> None:
        call()
        if device == "cuda":
            torch.cuda.synchronize()

    whole()
    return min(once(whole) for _ in range(repeats))


def of_transformers() -> Any:
    modules: dict[str, Any] = sys.modules
    modules.setdefault("torchvision", None)  # BLT has no pictures
    from transformers.models.blt import configuration_blt, modeling_blt

    return configuration_blt, modeling_blt


def patcher(config: blt.EntropyConfig, device: str, dtype: torch.dtype) -> Any:
    configs, models = of_transformers()
    made = models.BltPatcher(
        configs.BltPatcherConfig(
            hidden_size=config.size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.hidden,
            sliding_window=config.window,
            max_position_embeddings=config.length,
        )
    )
    return made.to(device, dtype).eval()


def entropy_rows(
    device: str, dtype: torch.dtype, names: list[str], compiled: bool
) -> list[dict[str, Any]]:
    from hotgrid.blt._entropy._names import TRANSFORMERS, renamed

    count, size = DOCUMENTS[device]
    data = text(count * size)
    documents = [data[i * size : (i + 1) * size - 1] for i in range(count)]
    ids = torch.stack([blt.byte_ids(each, bos=True) for each in documents]).to(device)
    rows = []
    for name in names:
        torch.manual_seed(0)
        config = blt.ENTROPY_SIZES[name]
        theirs = patcher(config, device, dtype)
        ours = blt.EntropyModel(config).to(device, dtype).eval()
        ours.compiled = compiled
        ours.load_state_dict(
            {renamed(key, TRANSFORMERS): each for key, each in theirs.state_dict().items()}
        )
        cut = blt.EntropyThreshold(ours, THRESHOLD)

        def mine(ours: Any = ours, cut: Any = cut) -> list[Any]:
            found = ours.signals(documents, embeddings=True)
            return [
                each.over(blt.patch_lengths(cut.starts_of(each.entropies))) for each in found
            ]

        def peers(theirs: Any = theirs) -> list[Any]:
            with torch.no_grad():
                # One at a time: rows with different numbers of patches do not go together.
                return [theirs(row[None], patch_size=4, threshold=THRESHOLD)[:2] for row in ids]

        apart = max(
            (a.uncertainty - b[0][0]).abs().max().item()
            for a, b in zip(ours.signals(documents), peers(), strict=True)
        )
        times = {"hotgrid": best(mine, device), "transformers": best(peers, device)}
        row: dict[str, Any] = {"model": name, "bytes": len(data)}
        row |= {f"{key} KB/s": round(len(data) / s / 1e3, 1) for key, s in times.items()}
        row["times as fast"] = round(times["transformers"] / times["hotgrid"], 2)
        rows.append({**row, "largest difference, nats": f"{apart:.1e}"})
    return rows


def drift_rows(device: str) -> list[dict[str, Any]]:
    """How far chunks are from one pass, in float32."""
    torch.manual_seed(0)
    config = blt.ENTROPY_SIZES["nano"]
    model = blt.EntropyModel(config).to(device).eval()
    data = text(6000)
    with torch.no_grad():
        logits = model(blt.byte_ids(data, bos=True)[None].to(device)).logits[0]
    wanted = torch.distributions.Categorical(logits=logits.float()).entropy()
    rows = []
    for chunk in (512, 2048):
        found = model.signals([data], chunk=chunk)[0].uncertainty
        apart = (found - wanted).abs()
        rows.append({"way": "keys of the window kept", "chunk": chunk})
        rows[-1] |= {"largest": f"{apart.max():.1e}", "mean": f"{apart.mean():.1e}"}
    for overlap in (512, config.receptive_field):
        step = 1024
        parts = [wanted[: overlap + step]]
        for at in range(step, len(wanted) - overlap, step):
            part = model.signals([data[at - 1 : at + overlap + step - 1]])[0].uncertainty
            parts.append(part[overlap + 1 : overlap + step + 1])
        found = torch.cat(parts)[: len(wanted)]
        apart = (found - wanted[: len(found)]).abs()
        rows.append({"way": f"separate chunks, overlap {overlap}", "chunk": overlap + step})
        rows[-1] |= {"largest": f"{apart.max():.1e}", "mean": f"{apart.mean():.1e}"}
    return rows


def table_rows() -> list[dict[str, Any]]:
    table, data = blt.load_ngram_table(), text(4_000_000)
    cut = blt.EntropyThreshold(table)
    rows = []
    for what, call in (
        ("entropies", lambda: table.entropies(data)),
        ("entropies and patch lengths", lambda: cut.lengths(data)),
    ):
        seconds = best(call, "cpu")
        rows.append({"n-gram table": what, "bytes": len(data)})
        begin = time.process_time()
        call()
        spent = time.process_time() - begin
        rows[-1]["MB/s"] = round(len(data) / seconds / 1e6, 1)
        rows[-1]["MB per CPU second"] = round(len(data) / spent / 1e6, 1)
    return rows


def latent_rows(device: str, dtype: torch.dtype) -> list[dict[str, Any]]:
    from hotgrid.blt._latent._files import our_name

    configs, models = of_transformers()
    config = blt.LATENT_SIZES["tiny"]
    local = {
        "hidden_size": config.local,
        "num_attention_heads": config.local_heads,
        "intermediate_size": config.local_hidden,
        "hidden_size_global": config.latent,
    }
    theirs = models.BltForCausalLM(
        configs.BltConfig(
            encoder_config=local | {"num_hidden_layers": config.encoder_layers},
            decoder_config=local | {"num_hidden_layers": config.decoder_layers},
            global_config={
                "hidden_size": config.latent,
                "num_attention_heads": config.latent_heads,
                "num_hidden_layers": config.latent_layers,
                "intermediate_size": config.latent_hidden,
            },
            encoder_hash_byte_group_vocab=config.ngram_rows,
            patch_in_forward=False,
        )
    ).to(device, dtype)
    ours = blt.LatentTransformer(config).to(device, dtype)
    ours.load_state_dict({our_name(k): v for k, v in theirs.state_dict().items()})  # pyright: ignore
    count, size = (16, 4096) if device == "cuda" else (1, 1024)
    data = text(count * size)
    documents = [data[i * size : (i + 1) * size - 1] for i in range(count)]
    ids, lengths = (each.to(device) for each in blt.patched(documents, blt.Static(4)))

    def mine() -> Any:
        with torch.no_grad():
            return ours(ids, lengths)

    def peers() -> Any:
        with torch.no_grad():
            states = theirs.model(ids, patch_lengths=lengths, use_cache=False)
            return theirs.lm_head(states.last_hidden_state)

    apart = (mine() - peers()).abs().max().item()
    times = {"hotgrid": best(mine, device), "transformers": best(peers, device)}
    row: dict[str, Any] = {"latent": "tiny, forward", "bytes": len(data)}
    row |= {f"{key} KB/s": round(len(data) / s / 1e3, 1) for key, s in times.items()}
    row["times as fast"] = round(times["transformers"] / times["hotgrid"], 2)
    return [{**row, "largest difference": f"{apart:.1e}"}]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", nargs="+", default=["nano", "blt-entropy"])
    options.add_argument("--compiled", action="store_true", help="compile our entropy model")
    options.add_argument("--table", action="store_true", help="only the n-gram table")
    chosen = options.parse_args()
    if chosen.table:
        return report("blt-table-cpu", table_rows(), threads=torch.get_num_threads())
    dtype = torch.bfloat16 if chosen.device == "cuda" else torch.float32
    rows = entropy_rows(chosen.device, dtype, chosen.sizes, chosen.compiled)
    rows += drift_rows(chosen.device) + table_rows() + latent_rows(chosen.device, dtype)
    threads = torch.get_num_threads()
    return report(
        f"blt-{chosen.device}",
        rows,
        dtype=str(dtype),
        threads=threads,
        compiled=chosen.compiled,
    )


if __name__ == "__main__":
    main()
