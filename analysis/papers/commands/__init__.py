"""Commands of this extension, a file per command."""
