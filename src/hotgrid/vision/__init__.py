"""vision: image models whose names and weights are those of timm.

model = create_model("resnet50", pretrained="resnet50.safetensors")
logits = model(images)           # `batch channels height width` to `batch classes`
maps = model.features(images)    # a map of each stage
"""

from ._layers._mlp import GlobalResponseNorm as GlobalResponseNorm
from ._layers._patches import PatchEmbed as PatchEmbed, PatchMerging as PatchMerging
from ._layers._window_attention import (
    CosineWindowAttention as CosineWindowAttention,
    WindowAttention as WindowAttention,
    attend_fused as attend_fused,
    attend_readable as attend_readable,
)
from ._layers._windows import (
    log_spaced_positions as log_spaced_positions,
    relative_position_index as relative_position_index,
    shift_mask as shift_mask,
    window_partition as window_partition,
    window_reverse as window_reverse,
)
from ._models._config import ModelConfig as ModelConfig
from ._models._create import create_model as create_model, list_models as list_models
from ._models._model import VisionModel as VisionModel
