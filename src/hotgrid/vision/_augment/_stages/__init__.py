"""The stages."""

from ._affine import Rotate as Rotate, Shear as Shear, Translate as Translate
from ._colour import ColourJitter as ColourJitter, Grayscale as Grayscale
from ._control import (
    ChooseOne as ChooseOne,
    StageSequence as StageSequence,
    WithProb as WithProb,
)
from ._erasing import Cutout as Cutout, RandomErasing as RandomErasing
from ._mixing import CutMix as CutMix, MixUp as MixUp
from ._noise import (
    GaussianBlur as GaussianBlur,
    GaussianNoise as GaussianNoise,
    Speckle as Speckle,
)
from ._normalise import NormalisePixels as NormalisePixels
from ._orientation import (
    AlternateFlip as AlternateFlip,
    HorizontalFlip as HorizontalFlip,
    PadCrop as PadCrop,
    VerticalFlip as VerticalFlip,
)
from ._policies import (
    AugMix as AugMix,
    RandAugment as RandAugment,
    TrivialAugment as TrivialAugment,
)
from ._tone import (
    AutoContrast as AutoContrast,
    Equalize as Equalize,
    Invert as Invert,
    Posterize as Posterize,
    Sharpness as Sharpness,
    Solarize as Solarize,
)
