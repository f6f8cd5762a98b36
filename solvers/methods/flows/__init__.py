"""Methods for concurrent flows and routing, shared by several papers."""
