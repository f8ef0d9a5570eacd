"""vision: image models whose names and weights are those of timm.

model = create_model("resnet50", pretrained="resnet50.safetensors")
logits = model(images)              # batch channels height width -> batch classes
maps = model.features(images)       # one map a stage
"""

from ._models._config import ModelConfig as ModelConfig
from ._models._create import create_model as create_model, list_models as list_models
from ._models._model import VisionModel as VisionModel
