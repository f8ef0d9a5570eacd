"""vision: image models with timm's names and weights; augmentation; training.

    model = create_model("resnet50", pretrained="resnet50.safetensors")
    logits = model(images)           # `batch channels height width` to `batch classes`
    maps = model.features(images)    # a map of each stage

An `AugmentStage` is a step of augmentation as data; `Augmentation` applies one to a batch on
its device. `open_images` and `train_images` train a model as a `VisionRecipe` says.
"""

from ._augment import (
    AlternateFlip as AlternateFlip,
    Augmentation as Augmentation,
    AugmentStage as AugmentStage,
    AugMix as AugMix,
    AutoContrast as AutoContrast,
    BatchDraws as BatchDraws,
    ChooseOne as ChooseOne,
    ColourJitter as ColourJitter,
    CutMix as CutMix,
    Cutout as Cutout,
    Equalize as Equalize,
    GaussianBlur as GaussianBlur,
    GaussianNoise as GaussianNoise,
    Grayscale as Grayscale,
    HorizontalFlip as HorizontalFlip,
    ImageBatch as ImageBatch,
    ImageStage as ImageStage,
    Invert as Invert,
    MixUp as MixUp,
    NormalisePixels as NormalisePixels,
    PadCrop as PadCrop,
    PixelStage as PixelStage,
    Posterize as Posterize,
    RandAugment as RandAugment,
    RandomErasing as RandomErasing,
    Rotate as Rotate,
    Sharpness as Sharpness,
    Shear as Shear,
    Solarize as Solarize,
    Speckle as Speckle,
    StageSequence as StageSequence,
    Translate as Translate,
    TrivialAugment as TrivialAugment,
    VerticalFlip as VerticalFlip,
    WithProb as WithProb,
    augment_stage as augment_stage,
    augment_stages as augment_stages,
    augmented_rows as augmented_rows,
    contact_sheet as contact_sheet,
    read_augmentation as read_augmentation,
    sample_keys as sample_keys,
    write_augmentation as write_augmentation,
)
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
from ._training import (
    ColumnBatches as ColumnBatches,
    ExportCheck as ExportCheck,
    ImageData as ImageData,
    ImageModel as ImageModel,
    ImageScore as ImageScore,
    Prediction as Prediction,
    TrainedImages as TrainedImages,
    VisionRecipe as VisionRecipe,
    VisionRun as VisionRun,
    WrongSample as WrongSample,
    export_model as export_model,
    find_recipe as find_recipe,
    load_image_model as load_image_model,
    open_images as open_images,
    predict_images as predict_images,
    read_recipe as read_recipe,
    recipe_names as recipe_names,
    save_image_model as save_image_model,
    score_images as score_images,
    train_images as train_images,
)
