"""Placement, circuits and wavelengths of optically connected GPUs (paper: SiP-ML)."""

PAPER = "SiP-ML: high-bandwidth optical network interconnects for machine learning training"
