"""operators: functions from columns to columns, one file each, registered by `@operator`."""

from ._centre_crop import CentreCrop as CentreCrop
from ._decode_centre_crop import DecodeCentreCrop as DecodeCentreCrop
from ._decode_image import DecodeImage as DecodeImage
from ._decode_random_crop import DecodeRandomCrop as DecodeRandomCrop
from ._label_encode import LabelEncode as LabelEncode
from ._normalise import Normalise as Normalise
from ._random_flip import RandomFlip as RandomFlip
from ._random_resized_crop import RandomResizedCrop as RandomResizedCrop
from ._resize import Resize as Resize
from ._shapes import Cast as Cast, Length as Length, Pad as Pad
from ._tokenise import Tokenise as Tokenise, set_encoder as set_encoder
