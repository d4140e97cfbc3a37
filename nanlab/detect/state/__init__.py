"""What a training run holds: listed, looked at, copied, put back."""
