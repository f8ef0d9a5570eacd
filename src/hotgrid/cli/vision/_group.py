"""The commands of `hotgrid vision`, as import strings."""

from types import MappingProxyType

from cyclopts import App

from hotgrid.cli._command_group import command_group

_EPILOGUE = """\
DATA is a folder with train/ and test/ (or val/), each with a folder for every
class; a folder with one folder for every class; a folder with the IDX files
of MNIST or Fashion-MNIST; or the JSON file of a plan with columns pixels and
label.

Examples:
  hotgrid vision train --data photos/ --model resnet50 --out out/photos
  hotgrid vision eval out/photos --data photos/
  hotgrid vision predict cat.jpg --model out/photos
  hotgrid vision augment --preview sheet.png --recipe swin
"""

# Name: where it is, what it does, examples.
_COMMANDS = MappingProxyType(
    {
        "train": (
            "_train:train",
            "Train a model on images.",
            """\
Images of up to 64 pixels are kept in memory on the device; larger ones are
decoded by threads. A recipe is a name (swin, deit, small-swin, fast-resnet,
small-resnet, fine-tune) or a .toml or .json file; --set changes a part of it.
A run that was interrupted continues with --resume, bit for bit.

Examples:
  hotgrid vision train --data cifar/ --model fast_resnet --out out/fast
  hotgrid vision train --data cifar/ --model swin_cifar --epochs 100
  hotgrid vision train --data cifar/ --model fast_resnet --out out/fast --resume
  hotgrid vision train --data photos/ --model resnet50 \\
    --pretrained resnet50.safetensors --recipe fine-tune --set layer_decay=0.8
  torchrun --nproc-per-node 8 -m hotgrid vision train --data imagenet/ \\
    --model swin_tiny_patch4_window7_224 --precision bfloat16 --compile
""",
        ),
        "eval": (
            "_eval:evaluate",
            "Evaluate a model on held-out images.",
            """\
Examples:
  hotgrid vision eval out/fast --data cifar/
  hotgrid vision eval out/fast --data cifar/ --flip --out report/ --json
""",
        ),
        "predict": (
            "_predict:predict",
            "Classify image files.",
            """\
Examples:
  hotgrid vision predict photo.jpg --model out/fast
  hotgrid vision predict photos/*.jpg --model out/fast --top 3 --out shown.png
""",
        ),
        "augment": (
            "_augment:augment",
            "Draw what an augmentation does, on a contact sheet.",
            """\
Without --images it draws synthetic pictures. The first column is the original.

Examples:
  hotgrid vision augment --preview sheet.png --recipe swin
  hotgrid vision augment --preview sheet.png --images a.jpg b.jpg --versions 12
  hotgrid vision augment --preview sheet.png --stages augment.json
""",
        ),
        "export": (
            "_export:export",
            "Write a model for other programs, and check what it computes.",
            """\
The exported model takes bytes, batch x channels x height x width, and returns
scores.

Examples:
  hotgrid vision export out/fast --format torch-export --out fast.pt2
  hotgrid vision export out/fast --format onnx --out fast.onnx
""",
        ),
        "models": (
            "_models:models",
            "List the models, or the recipes.",
            """\
Examples:
  hotgrid vision models
  hotgrid vision models "swin*" --json
  hotgrid vision models --recipes
""",
        ),
    }
)


def vision_group() -> App:
    """The group of commands."""
    return command_group(
        "vision", "Train, evaluate and run image models.", _EPILOGUE, _COMMANDS
    )
