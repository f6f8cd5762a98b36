"""The ledger of the papers' claims."""
