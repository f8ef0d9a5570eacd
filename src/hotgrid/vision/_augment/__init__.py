"""Augmentation: stages as data, applied to a batch on its device."""

from ._augmentation import (
    Augmentation as Augmentation,
    read_augmentation as read_augmentation,
    write_augmentation as write_augmentation,
)
from ._draws import BatchDraws as BatchDraws, sample_keys as sample_keys
from ._sheet import (
    augmented_rows as augmented_rows,
    contact_sheet as contact_sheet,
    sample_images as sample_images,
)
from ._stage import (
    AugmentStage as AugmentStage,
    ImageBatch as ImageBatch,
    ImageStage as ImageStage,
    PixelStage as PixelStage,
    augment_stage as augment_stage,
    augment_stages as augment_stages,
)
from ._stages import (
    AlternateFlip as AlternateFlip,
    AugMix as AugMix,
    AutoContrast as AutoContrast,
    ChooseOne as ChooseOne,
    ColourJitter as ColourJitter,
    CutMix as CutMix,
    Cutout as Cutout,
    Equalize as Equalize,
    GaussianBlur as GaussianBlur,
    GaussianNoise as GaussianNoise,
    Grayscale as Grayscale,
    HorizontalFlip as HorizontalFlip,
    Invert as Invert,
    MixUp as MixUp,
    NormalisePixels as NormalisePixels,
    PadCrop as PadCrop,
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
)
