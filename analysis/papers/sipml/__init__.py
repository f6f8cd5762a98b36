"""SiP-ML: claims and figures."""
