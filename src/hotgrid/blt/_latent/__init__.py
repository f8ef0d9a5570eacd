"""The byte-latent transformer: bytes to patches, a transformer over patches, and back."""
