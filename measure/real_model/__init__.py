"""What each cut costs SmolLM2-135M: the study of the page *A real model*."""
