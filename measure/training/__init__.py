"""Studies of trained models: small ones, trained here, and a published encoder."""
