"""SiP-ML: claims, figures and benchmark tables."""
