"""kernels.fft: Fourier transforms of any length; batches of real images by the fastest way."""

from ._front import irfft2 as irfft2, rfft2 as rfft2
from ._op import (
    IRFFT2 as IRFFT2,
    RFFT2 as RFFT2,
    tuned_irfft2 as tuned_irfft2,
    tuned_rfft2 as tuned_rfft2,
)
from ._torchs import (
    fft as fft,
    fft2 as fft2,
    fftn as fftn,
    ifft as ifft,
    ifft2 as ifft2,
    ifftn as ifftn,
    irfft as irfft,
    irfftn as irfftn,
    rfft as rfft,
    rfftn as rfftn,
)
